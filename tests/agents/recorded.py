"""A recorded session as a surface: agents search among the schedules that it measured."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from pathlib import Path

from cake_tui.backends.simulated.surfaces import Noise, Surface
from cake_tui.model.history import History
from cake_tui.model.row import Row
from cake_tui.model.schedule import KnobValue, Schedule
from cake_tui.store.reading import decode

QUIET = Surface("recorded", "a recorded session", Noise(0.0, 0.0), {}, lambda schedule, numbers: "Measured")


class RecordedSurface:
    """The schedules that a session measured, and nothing else.

    A proposal is taken to the nearest recorded setting of its structure that this run has not had yet, so that
    every candidate has a real time. Random search is then about drawing without putting back.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._times: dict[Schedule, float] = {}
        self._places: dict[str, list[tuple[Schedule, dict[str, float]]]] = {}
        for row in rows:
            if row.schedule is not None and row.standing is not None and row.schedule not in self._times:
                # relative to candidate 0, through pairs with the incumbents: free of drift between candidates
                self._times[row.schedule] = 1e4 * math.exp(-row.standing)
                self._places.setdefault(row.schedule.structure, []).append((row.schedule, _place(row.schedule)))

    @property
    def optimum_us(self) -> float:
        """The fastest recorded time; candidate 0 is taken to have 10 ms."""
        return min(self._times.values())

    @property
    def count(self) -> int:
        """How many schedules have a time."""
        return len(self._times)

    def time_us(self, schedule: Schedule) -> float:
        """Return a recorded time; raises KeyError for a schedule that has none."""
        return self._times[schedule]

    def nearest(self, schedule: Schedule, had: Collection[Schedule | None]) -> Schedule | None:
        """Return the nearest recorded setting of the structure that is not among `had`; None where all were."""
        here = _place(schedule)
        left = [one for one in self._places.get(schedule.structure, ()) if one[0] not in had]
        return min(left, key=lambda one: _distance(here, one[1]), default=(None, {}))[0]


def read_history(journal: Path) -> History:
    """Fold a journal; what cannot be read is passed over."""
    history = History()
    for line in journal.read_bytes().splitlines():
        for event in decode(line):
            history.apply(event)
    return history


def _place(schedule: Schedule) -> dict[str, float]:
    return {name: _coordinate(value) for name, value in schedule.knobs}


def _coordinate(value: KnobValue) -> float:
    if isinstance(value, bool) or not isinstance(value, int):
        return 2.0 * bool(value)
    return math.log2(1.0 + abs(value))


def _distance(here: dict[str, float], there: dict[str, float]) -> float:
    return sum((value - there.get(name, value)) ** 2 for name, value in here.items())
