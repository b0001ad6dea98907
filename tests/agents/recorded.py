"""A recorded session as a surface: schedules it measured have their times, others that of the nearest measured one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from cake_tui.backends.simulated.surfaces import Noise, Surface
from cake_tui.model.history import History
from cake_tui.model.row import Row
from cake_tui.model.schedule import KnobValue, Schedule
from cake_tui.store.reading import decode

QUIET = Surface("recorded", "a recorded session", Noise(0.0, 0.0), {}, lambda schedule, numbers: "Measured")


class RecordedSurface:
    """Times of a session folder's journal; a structure that it never measured cannot be told and is far slower."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._known: dict[Schedule, float] = {}
        self._places: dict[str, list[tuple[dict[str, float], float]]] = {}
        for row in rows:
            if row.schedule is not None and row.standing is not None:
                relative = math.exp(-row.standing)  # time over candidate 0's: free of drift between candidates
                self._known[row.schedule] = relative
                self._places.setdefault(row.schedule.structure, []).append((_place(row.schedule), relative))
        self._nearest: dict[Schedule, float] = {}

    @property
    def optimum_us(self) -> float:
        """The fastest recorded time."""
        return 1e4 * min(self._known.values())

    @property
    def count(self) -> int:
        """How many schedules have a time."""
        return len(self._known)

    def time_us(self, schedule: Schedule) -> float:
        """Return the recorded time, or that of the nearest recorded setting of the structure."""
        if schedule in self._known:
            return 1e4 * self._known[schedule]
        if schedule not in self._nearest:
            here = _place(schedule)
            there = self._places.get(schedule.structure)
            self._nearest[schedule] = min(there, key=lambda one: _distance(here, one[0]))[1] if there else 1e3
        return 1e4 * self._nearest[schedule]


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
