"""Guards that pause a run which only burns its budget."""

from __future__ import annotations

import re

from cake_tui.model.event import CandidateEnded, Event, PausedByGuard, RoundBegan
from cake_tui.model.history import History
from cake_tui.model.outcome import FAILED, Measured, kind_of

# What differs between two failures of one cause: names of files, numbers.
_VARIES = re.compile(r"(?:/[^\s/:;,'\"()]+)+|0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
IDLE_ROUNDS = 3
# Mended, these may end otherwise; a kernel that hangs or is wrong stays what it is.
_MENDABLE = ("BuildFailed", "LaunchFailed", "Crashed")


class EqualFailures:
    """Counts failures in a row that read the same but for numbers and files: one cause outside the candidates."""

    def __init__(self) -> None:
        self._reason = ""
        self._said = ""
        self._streak: list[int] = []
        self._idle = 0

    def see(self, event: Event, history: History, limit: int) -> PausedByGuard | None:
        """Return the pause where this is the `limit`-th in a row, or all failed and none is left to be tried.

        Candidates that were never tried (screened, repeated, rejected) say nothing either way.
        """
        if isinstance(event, RoundBegan):
            self._idle += 1
            left = self._idle <= IDLE_ROUNDS
            return None if left or not self._streak or history.effective > 1 else self._pause(" and no other is left")
        if not isinstance(event, CandidateEnded):
            return None
        if isinstance(event.outcome, Measured):
            self._streak.clear()
        kind = kind_of(event.outcome)
        if kind not in FAILED:
            return None
        reason = f"{kind}: {_VARIES.sub('#', event.outcome.reason)}"
        if reason != self._reason:
            self._streak.clear()
        self._reason, self._said, self._idle = reason, event.outcome.reason or kind, 0
        self._streak.append(event.candidate)
        return self._pause("") if len(self._streak) >= limit else None

    def _pause(self, more: str) -> PausedByGuard:
        """Pause; counting begins anew, and what may end otherwise once it is mended may be tried again."""
        streak, self._streak, self._idle = self._streak, [], 0
        kind = self._reason.partition(":")[0]
        return PausedByGuard(
            guard="equal failures",
            reason=f"{len(streak)} candidates in a row ended {kind}{more}: {self._said}; mend it and resume, "
            f"or raise the setting equal_failures",
            again=tuple(streak) if kind in _MENDABLE else (),
        )
