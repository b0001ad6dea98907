"""What agents read from a history: rows by structure and schedules that were tried, kept up to date row by row.

It holds nothing of its own: reading a whole history at once gives the same as following it, so that resume
and replay need no saved state. Following it costs only the new rows.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from cake_tui.model.history import History
from cake_tui.model.outcome import FAILED
from cake_tui.model.row import Row
from cake_tui.model.schedule import Schedule

LEADERS = 64
AGAIN = ("Interrupted",)  # endings that leave a schedule untried


@dataclass
class Tried:
    """The rows of one structure, oldest first: those with a time, and those that failed or were rejected."""

    structure: str
    measured: list[Row] = field(default_factory=list)
    failed: list[Row] = field(default_factory=list)
    curve: list[float] = field(default_factory=list)  # the best standing after each measured row
    leaders: list[Row] = field(default_factory=list)  # the best `LEADERS` rows are among these

    @property
    def best(self) -> Row | None:
        """The row of the highest standing, the earliest of equals."""
        return max(self.leaders, key=standing_of, default=None)

    @property
    def first_round(self) -> int:
        """The round in which the structure was first tried."""
        return min(rows[0].round for rows in (self.measured, self.failed) if rows)

    @property
    def rising(self) -> float:
        """What the later half of its tries brought (ln units): a learning curve's gain per doubling."""
        half = len(self.curve) // 2
        return self.curve[-1] - self.curve[half - 1] if half else 0.0

    def top(self, count: int) -> list[Row]:
        """The best rows, best first, at most `LEADERS`."""
        return heapq.nlargest(count, self.leaders, key=standing_of)

    def add(self, row: Row, standing: float) -> None:
        """Take in a row that has a time."""
        self.measured.append(row)
        self.curve.append(max(standing, self.curve[-1]) if self.curve else standing)
        self.leaders.append(row)
        if len(self.leaders) > 2 * LEADERS:
            self.leaders = heapq.nlargest(LEADERS, self.leaders, key=standing_of)


class Record:
    """A reading of a history; call `follow` at the beginning of each round."""

    def __init__(self) -> None:
        self.structures: dict[str, Tried] = {}
        self.last_macro_round = 0
        self._seen: set[Schedule] = set()
        self._rows: list[Row] | None = None
        self._last: Row | None = None
        self._count = 0
        self._forgiven = 0

    def follow(self, history: History) -> None:
        """Read the rows that are new; start afresh where this is another history than last time."""
        rows = history.rows
        same = rows is self._rows and len(rows) >= self._count
        same = same and history.forgiven == self._forgiven
        if not same or (self._count and rows[self._count - 1] is not self._last):
            self.structures, self._seen, self._count, self.last_macro_round = {}, set(), 0, 0
        self._rows, self._forgiven = rows, history.forgiven
        while self._count < len(rows) and not rows[self._count].in_flight:
            self._read(rows[self._count])
            self._count += 1
        self._last = rows[self._count - 1] if self._count else None

    def tried(self, schedule: Schedule) -> bool:
        """Tell whether a schedule has an ending, or is on its way to one."""
        if schedule in self._seen:
            return True
        under_way = self._rows[self._count :] if self._rows else ()
        return bool(under_way) and any(row.schedule == schedule for row in under_way)

    def _read(self, row: Row) -> None:
        if row.level == "macro":
            self.last_macro_round = row.round
        if row.schedule is None or row.again:
            return
        tried = self.structures.get(row.schedule.structure)
        if tried is None:
            tried = self.structures[row.schedule.structure] = Tried(row.schedule.structure)
        if row.standing is not None:
            tried.add(row, row.standing)
        elif row.outcome in FAILED or row.outcome == "Rejected":
            tried.failed.append(row)
        if row.outcome not in AGAIN and row.verdict != "noisy":
            self._seen.add(row.schedule)


def standing_of(row: Row) -> float:
    """The row's standing; rows without one come last."""
    return row.standing if row.standing is not None else float("-inf")
