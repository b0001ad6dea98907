"""A recorded session as a surface: agents search among the schedules that it measured."""

from __future__ import annotations

import functools
import json
import math
import random
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from cake_tui import ir
from cake_tui.backends.simulated.surfaces import Noise, Surface
from cake_tui.errors import Ended
from cake_tui.ir import cost
from cake_tui.model.device import Device
from cake_tui.model.history import History
from cake_tui.model.problem import Problem, Shape
from cake_tui.model.schedule import KnobValue, Schedule
from cake_tui.store.reading import decode
from tests.matmul import MATMUL

QUIET = Surface("recorded", "a recorded session", Noise(0.0, 0.0), {}, lambda schedule, numbers: "Measured")
SAMPLE = Path(__file__).parents[1] / "data" / "cost" / "matmul_random.json"
TIE = 1e-3  # weight of knobs beside the cost model's terms


class RecordedSurface:
    """The schedules that a session measured, and nothing else.

    A proposal is taken to the nearest recorded setting of its structure that this run has not had yet, so that
    every candidate has a real time. Near is what the cost model's terms call alike: vectors and register blocks
    count for more than the place of a tail.
    """

    def __init__(self, times: Iterable[tuple[Schedule, float]], problem: Problem, device: Device) -> None:
        self.problem, self.device = problem, device
        self._times: dict[Schedule, float] = {}
        for schedule, time_us in times:
            self._times.setdefault(schedule, time_us)

    @classmethod
    def of(cls, history: History) -> RecordedSurface:
        """Take a session's times relative to candidate 0's 10 ms, by pairs: free of drift between candidates."""
        rows = [row for row in history.rows if row.schedule is not None and row.standing is not None]
        times = [(row.schedule, 1e4 * math.exp(-(row.standing or 0.0))) for row in rows if row.schedule is not None]
        return cls(times, history.problem, history.device)

    @classmethod
    def sample(cls, size: int) -> RecordedSurface:
        """Read the stored random sample of one size; schedules that builders do not know any more are left out."""
        data = json.loads(SAMPLE.read_text(encoding="utf-8"))
        shape = Shape((("M", size), ("N", size), ("K", size)))
        problem = msgspec.structs.replace(MATMUL, shapes=(shape,))
        rows = [(Schedule.of(structure, knobs), time_us) for structure, knobs, time_us in data["samples"][str(size)]]
        found = cls(rows, problem, msgspec.convert(data["device"], Device))
        return cls([row for row in rows if found.estimate(row[0]) is not None], problem, found.device)

    def half(self, seed: int) -> RecordedSurface:
        """Return the surface with a random half of its schedules, the baseline among them."""
        drawn = list(self._times)
        random.Random(f"half/{seed}").shuffle(drawn)
        kept = [one for one in drawn if one.structure == "naive"] + drawn[: len(drawn) // 2]
        return RecordedSurface([(one, self._times[one]) for one in kept], self.problem, self.device)

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
        """Say how many candidates the recorded run itself had until one was fast enough, candidate 0 among them."""
        return 1 + next(at for at, time_us in enumerate(self._times.values()) if time_us <= target_us)

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
        left = [one for one in self._times if one.structure == schedule.structure and one not in had]
        if not left:
            return None
        here = _place(schedule), _terms(self.estimate(schedule))
        return min(left, key=lambda one: _distance(here, (_place(one), _terms(self.estimate(one)))))


Place = tuple[dict[str, float], dict[str, float]]


def read_history(journal: Path) -> History:
    """Fold a journal; what cannot be read is passed over."""
    history = History()
    for line in journal.read_bytes().splitlines():
        for event in decode(line):
            history.apply(event)
    return history


@functools.lru_cache(maxsize=50_000)
def _estimate(problem: Problem, device: Device, schedule: Schedule) -> cost.Estimate | None:
    try:
        program = ir.build(problem, schedule, device.target, device, runtime_sizes=False)
    except Ended:
        return None
    return cost.estimate(program, device, problem.shapes)


def _terms(estimate: cost.Estimate | None) -> dict[str, float]:
    return {} if estimate is None else {**dict(estimate.terms), "roofline": math.log(estimate.roofline_us)}


def _place(schedule: Schedule) -> dict[str, float]:
    return {name: _coordinate(value) for name, value in schedule.knobs}


def _coordinate(value: KnobValue) -> float:
    if isinstance(value, bool) or not isinstance(value, int):
        return 2.0 * bool(value)
    return math.log2(1.0 + abs(value))


def _distance(here: Place, there: Place) -> float:
    knobs, terms = (
        sum((value - other.get(name, value)) ** 2 for name, value in mine.items()) for mine, other in zip(here, there)
    )
    return terms + TIE * knobs
