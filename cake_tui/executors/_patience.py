"""Time limits that count only time that was had: a stopped process or a suspended machine makes a gap."""

from __future__ import annotations

import time

TICK_S = 0.05
GAP_S = 1.0


class Limit:
    """A limit in seconds of running time; `tick` is called at least every `TICK_S`, else a gap is credited."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.had = 0.0
        self._last = time.monotonic()

    def tick(self, counts: bool = True) -> bool:
        """Take the time since the last tick into account; return whether the limit is passed."""
        now = time.monotonic()
        passed, self._last = now - self._last, now
        if counts and passed < GAP_S:
            self.had += passed
        return self.had > self.seconds
