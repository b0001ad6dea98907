"""What the cost model expects of settings, asked while a structure has few measurements: the probe's prior.

How far it is believed follows from the measurements that there are: the slope of standings over its forecasts.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache

from cake_tui import ir
from cake_tui.agents._record import Record
from cake_tui.errors import Ended
from cake_tui.ir import cost
from cake_tui.menu import Menu
from cake_tui.model.device import Device
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Schedule

YOUNG = 8  # measurements of a structure up to which the cost model is asked
BELIEF, DOUBT = 0.8, 0.3  # the slope expected before anything is measured, and how much that weighs (ln units squared)
BELIEF_LEAST, BELIEF_MOST = 0.1, 1.2  # below the least it is not worth asking


class Forecast:
    """A round's view of the cost model: a pure function of menu and record."""

    def __init__(self, menu: Menu, record: Record) -> None:
        self._menu, self._record = menu, record

    @property
    def believed(self) -> bool:
        """Whether the cost model is worth asking."""
        return self.belief >= BELIEF_LEAST

    def standing(self, schedule: Schedule) -> float | None:
        """Return what a standing is made of as far as the cost model is believed, in ln units with any origin.

        None where it has no opinion, minus infinity where no program can be built.
        """
        found = self._opinion(schedule)
        return None if found is None else self.belief * found

    def _opinion(self, schedule: Schedule) -> float | None:
        if schedule.structure not in self._menu.structures:  # a program text's
            return None
        return _opinion(self._menu.problem, self._menu.device, schedule)

    @cached_property
    def belief(self) -> float:
        """By how much a standing rises with its forecast: ridge regression through each structure's means.

        It pulls towards `BELIEF` and looks at each structure's first measurements, of which forecasts are at hand.
        """
        shared, spread = DOUBT * BELIEF, DOUBT
        for tried in self._record.structures.values():
            pairs = [
                (opinion, row.standing)
                for row in tried.measured[:YOUNG]
                if row.schedule is not None and row.standing is not None
                for opinion in [self._opinion(row.schedule)]
                if opinion is not None and math.isfinite(opinion)
            ]
            if len(pairs) > 1:
                middle = [sum(side) / len(pairs) for side in zip(*pairs)]
                shared += sum((x - middle[0]) * (y - middle[1]) for x, y in pairs)
                spread += sum((x - middle[0]) ** 2 for x, _ in pairs)
        return min(BELIEF_MOST, max(0.0, shared / spread))


@lru_cache(maxsize=8192)
def _opinion(problem: Problem, device: Device, schedule: Schedule) -> float | None:
    """Return -ln(predicted time in us), uncorrected; None for no opinion, minus infinity where nothing can be built."""
    try:
        program = ir.full_build(problem, schedule, device)
    except Ended:
        return -math.inf
    found = cost.estimate(program, device, problem.shapes)
    return None if found is None or found.abstains is not None else -math.log(found.predicted_us)
