"""Guards that pause a run which only burns its budget."""

from __future__ import annotations

import re

from cake_tui.model.event import CandidateEnded, PausedByGuard
from cake_tui.model.outcome import FAILED, Measured, kind_of

_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


class EqualFailures:
    """Counts failures in a row that read the same but for their numbers: one cause outside the candidates."""

    def __init__(self) -> None:
        self._reason = ""
        self._count = 0

    def see(self, event: CandidateEnded, limit: int) -> PausedByGuard | None:
        """Return the pause where this candidate is the `limit`-th in a row; the count begins anew then.

        Candidates that were never tried (screened, repeated, rejected) say nothing either way.
        """
        outcome = event.outcome
        if isinstance(outcome, Measured):
            self._count = 0
            return None
        kind = kind_of(outcome)
        if kind not in FAILED:
            return None
        reason = f"{kind}: {_NUMBER.sub('#', outcome.reason)}"
        self._count = self._count + 1 if reason == self._reason else 1
        self._reason = reason
        if self._count < limit:
            return None
        self._count = 0
        said = outcome.reason or kind
        return PausedByGuard(
            guard="equal failures",
            reason=f"{limit} candidates in a row ended {kind}: {said}; mend it and resume, "
            f"or raise the setting equal_failures",
        )
