"""A recorded session as a surface: agents search among the schedules that it measured."""

from __future__ import annotations

import functools
import json
import math
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from cake_tui import ir
from cake_tui.backends.simulated.surfaces import Noise, Surface
from cake_tui.errors import Ended
from cake_tui.ir import cost
from cake_tui.model.device import Device
from cake_tui.model.problem import Problem, Shape
from cake_tui.model.schedule import KnobValue, Schedule
from tests.agents.samples import Sample
from tests.matmul import MATMUL

QUIET = Surface("recorded", "a recorded session", Noise(0.0, 0.0), {}, lambda schedule, numbers: "Measured")
CUBES = Path(__file__).parents[1] / "data" / "cost" / "matmul_random.json"
TIE = 1e-3  # weight of knobs beside the cost model's terms


class RecordedSurface:
    """The schedules that a session measured, and nothing else.

    A proposal is taken to the nearest recorded setting of its structure that this run has not had yet, so that
    every candidate has a real time. Near is what the cost model's terms call alike: vectors and register blocks
    count for more than the place of a tail. A setting that was not recorded never gets a time of its own.
    """

    def __init__(
        self, times: Iterable[tuple[Schedule, float]], problem: Problem, device: Device, *, by_knobs: bool = False
    ) -> None:
        """With `by_knobs` the nearest setting goes by knobs alone, in octaves."""
        self.problem, self.device, self._by_knobs = problem, device, by_knobs
        self._times: dict[Schedule, float] = {}
        self._by_structure: dict[str, list[Schedule]] = {}
        self._placed: dict[str, tuple[list[str], NDArray[np.float64]]] = {}
        for schedule, time_us in times:
            if schedule not in self._times:
                self._times[schedule] = time_us
                self._by_structure.setdefault(schedule.structure, []).append(schedule)

    @classmethod
    def of(cls, sample: Sample, *, by_knobs: bool = False) -> RecordedSurface:
        """Take what a session measured."""
        times = [(one.schedule, one.time_us) for one in sample.entries]
        return cls(times, sample.problem, sample.device, by_knobs=by_knobs)

    @classmethod
    def cube(cls, size: int, *, by_knobs: bool = False) -> RecordedSurface:
        """Read the sample of M = N = K = `size`; schedules that builders do not know any more are left out."""
        data = json.loads(CUBES.read_text(encoding="utf-8"))
        shape = Shape((("M", size), ("N", size), ("K", size)))
        problem = msgspec.structs.replace(MATMUL, shapes=(shape,))
        rows = [(Schedule.of(structure, knobs), time_us) for structure, knobs, time_us in data["samples"][str(size)]]
        found = cls(rows, problem, msgspec.convert(data["device"], Device))
        known = [row for row in rows if found.estimate(row[0]) is not None]
        return cls(known, problem, found.device, by_knobs=by_knobs)

    @property
    def optimum_us(self) -> float:
        """The fastest recorded time."""
        return min(self._times.values())

    @property
    def count(self) -> int:
        """How many schedules have a time."""
        return len(self._times)

    def time_us(self, schedule: Schedule) -> float:
        """Return a recorded time; raises KeyError for a schedule that has none."""
        return self._times[schedule]

    def as_recorded(self, target_us: float) -> int:
        """Say how many candidates behind candidate 0 the recorded run itself had until one was fast enough."""
        return next(at for at, time_us in enumerate(self._times.values()) if time_us <= target_us)

    def drawn(self, seed: int, target_us: float) -> int:
        """Random search: how many of the recorded candidates, in an order drawn anew, until one is fast enough."""
        order = [one for one in self._times if one.structure != "naive"]
        random.Random(f"draw/{seed}").shuffle(order)
        return 1 + next(at for at, one in enumerate(order) if self._times[one] <= target_us)

    def estimate(self, schedule: Schedule) -> cost.Estimate | None:
        """The cost model's uncorrected estimate; None where no program can be built."""
        return _estimate(self.problem, self.device, schedule)

    def nearest(self, schedule: Schedule, had: Collection[Schedule | None]) -> Schedule | None:
        """Return the nearest recorded setting of the structure that is not among `had`; None where all were."""
        left = np.array([one not in had for one in self._ones(schedule.structure)], dtype=bool)
        if not left.any():
            return None
        names, rows = self._places(schedule.structure)
        apart = rows - _vector(self._place(schedule), names)
        # What one of two settings lacks does not set them apart.
        return self._ones(schedule.structure)[int(np.where(left, np.nansum(apart * apart, axis=1), np.inf).argmin())]

    def drawn_start(self, structure: str, seed: int, had: Collection[Schedule | None]) -> Schedule | None:
        """Return the next recorded setting of the structure in an order drawn by the seed; None where all were had."""
        order = list(self._ones(structure))
        random.Random(f"start/{seed}/{structure}").shuffle(order)
        return next((one for one in order if one not in had), None)

    def _ones(self, structure: str) -> list[Schedule]:
        return self._by_structure.get(structure, [])

    def _places(self, structure: str) -> tuple[list[str], NDArray[np.float64]]:
        if structure not in self._placed:
            places = [self._place(one) for one in self._ones(structure)]
            names = sorted({name for place in places for name in place})
            self._placed[structure] = names, np.array([_vector(place, names) for place in places])
        return self._placed[structure]

    def _place(self, schedule: Schedule) -> dict[str, float]:
        scale = 1.0 if self._by_knobs else math.sqrt(TIE)
        place = {f"knob {name}": scale * _coordinate(value) for name, value in schedule.knobs}
        estimate = None if self._by_knobs else self.estimate(schedule)
        if estimate is not None:
            place |= dict(estimate.terms) | {"roofline": math.log(estimate.roofline_us)}
        return place


@functools.lru_cache(maxsize=50_000)
def _estimate(problem: Problem, device: Device, schedule: Schedule) -> cost.Estimate | None:
    try:
        program = ir.build(problem, schedule, device.target, device, runtime_sizes=False)
    except Ended:
        return None
    return cost.estimate(program, device, problem.shapes)


def _coordinate(value: KnobValue) -> float:
    if isinstance(value, bool) or not isinstance(value, int):
        return 2.0 * bool(value)
    return math.log2(1.0 + abs(value))


def _vector(place: Mapping[str, float], names: Sequence[str]) -> NDArray[np.float64]:
    return np.array([place.get(name, math.nan) for name in names])
