"""Candidates as they end, each told once: panes of a long run look at what is new instead of at all of it."""

from __future__ import annotations

from cake_tui.model.history import History
from cake_tui.model.row import Row


class Ended:
    """`news` gives the rows that ended since the last call; `restarted` after another history, or an earlier moment."""

    def __init__(self) -> None:
        self.restarted = True
        self.open: list[int] = []  # candidates that have not ended, oldest first
        self._of = 0
        self._seq = -1
        self._read = 0

    def news(self, history: History) -> list[Row]:
        """Rows that have an ending now and had none before, in their order."""
        rows = history.rows
        self.restarted = self._of != id(history) or self._read > len(rows) or history.seq < self._seq
        if self.restarted:
            self.open, self._read = [], 0
        waiting = [*self.open, *range(self._read, len(rows))]
        self.open = [number for number in waiting if rows[number].outcome is None]
        self._of, self._seq, self._read = id(history), history.seq, len(rows)
        return [rows[number] for number in waiting if rows[number].outcome is not None]
