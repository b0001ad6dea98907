"""The clocks of a session: wall for stamps, monotonic within one boot for every duration; gaps between them."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from pathlib import Path

from cake_tui.model.event import GapSeen

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Clocks:
    """What time it is; tests hand in a subclass with hands of its own."""

    def wall(self) -> float:
        """Seconds since 1970, as the machine believes."""
        return time.time()

    def mono(self) -> float:
        """Monotonic seconds within this boot."""
        return time.monotonic()

    def boot(self) -> str:
        """Id of this boot; monotonic seconds of different boots are never compared."""
        try:
            return _BOOT_ID.read_text(encoding="ascii").strip()
        except OSError:
            return "unknown"


def utc_text(wall: float) -> str:
    """``2026-11-29T23:07:30.123Z``."""
    try:
        stamp = datetime.fromtimestamp(wall, UTC)
    except (OverflowError, ValueError, OSError):
        stamp = datetime.fromtimestamp(0, UTC)
    return stamp.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_since(stamp: str, wall: float) -> float:
    """Return how long ago a stamp of `utc_text` was; 0 where it is none, or in the future."""
    try:
        then = datetime.fromisoformat(stamp)
    except ValueError:
        return 0.0
    return max(0.0, wall - (then if then.tzinfo is not None else then.replace(tzinfo=UTC)).timestamp())


_SUSPECT_S = 1.0


class GapWatch:
    """Notices time that the run did not have, from the beats of the heartbeat thread.

    Two beats far apart on the monotonic clock: the process was stopped. A wall clock that moved more or
    less than the monotonic one: it was stepped, or the machine slept (Linux's monotonic clock sleeps too).
    """

    def __init__(self, clocks: Clocks, period_s: float) -> None:
        self._clocks = clocks
        self._period_s = period_s
        # A starved thread on a busy machine is late by fractions of a second; a continued process says so.
        self._late_s = max(3.0, 5.0 * period_s)
        self._late_after_continue_s = max(0.5, 2.0 * period_s)
        self._step_s = 2.0
        self._lock = threading.Lock()
        self._continued = False
        # A pause too short to be one by itself, and until when: SIGCONT may be told about after it.
        self._suspect_s, self._suspected_until = 0.0, 0.0
        self._found: list[GapSeen] = []
        self._mono, self._wall = clocks.mono(), clocks.wall()

    def restart(self) -> None:
        """Begin here: what passed before was nobody's time."""
        with self._lock:
            self._mono, self._wall, self._continued = self._clocks.mono(), self._clocks.wall(), False
            self._suspect_s = 0.0

    def continued(self) -> None:
        """Note that the process was continued (SIGCONT); safe in a signal handler."""
        self._continued = True

    def look(self, *, beat: bool) -> None:
        """Compare the clocks with the last beat; `beat` says that this is one."""
        if not self._lock.acquire(blocking=beat):
            return
        try:
            mono, wall = self._clocks.mono(), self._clocks.wall()
            passed = mono - self._mono
            stepped = (wall - self._wall) - passed
            if mono > self._suspected_until:
                self._suspect_s = 0.0
            paused_s = max(passed, self._suspect_s)
            stopped = paused_s > (self._late_after_continue_s if self._continued else self._late_s)
            if stopped:
                # It may have run for up to a period after its last beat: time it had is not given back twice.
                self._found.append(GapSeen(seconds=paused_s - min(self._period_s, paused_s), what="stopped"))
            if abs(stepped) > self._step_s:
                self._found.append(GapSeen(seconds=stepped, what="wall"))
            if beat or stopped or abs(stepped) > self._step_s:
                if stopped:
                    self._suspect_s = 0.0
                elif passed > self._late_after_continue_s:
                    # The signal's handler runs in the main thread: the heartbeat's may wake before it.
                    self._suspect_s, self._suspected_until = passed, mono + _SUSPECT_S
                self._mono, self._wall, self._continued = mono, wall, False
        finally:
            self._lock.release()

    def add(self, gap: GapSeen) -> None:
        """Add a gap that the clocks cannot show; one that goes on is one gap."""
        with self._lock:
            if self._found and self._found[-1].what == gap.what:
                gap = GapSeen(seconds=self._found.pop().seconds + gap.seconds, what=gap.what)
            self._found.append(gap)

    def take(self) -> list[GapSeen]:
        """Return the gaps found since the last call, oldest first."""
        with self._lock:
            found, self._found = self._found, []
        return found
