"""Between a session's folder and the panes: polls, folds, moves a replay's cursor, and sends requests.

Live, attached late and replayed are one path: a `Fold` of the journal's events up to a cursor.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import msgspec

from cake_tui.model import layout
from cake_tui.model.event import Event
from cake_tui.model.history import History
from cake_tui.model.state import ENDED
from cake_tui.store import inbox
from cake_tui.store.clock import Clocks, seconds_since
from cake_tui.store.lock import engine_of
from cake_tui.tui.files import SessionFiles
from cake_tui.tui.index import JournalIndex
from cake_tui.tui.telemetry import Telemetry
from cake_tui.tui.trail import Trail


@dataclass(frozen=True)
class Now:
    """The time as the viewer takes it: wall clock, monotonic seconds and the machine's boot id."""

    wall: datetime
    mono: float
    boot: str


def machine_now() -> Now:
    """Read this machine's clocks."""
    clocks = Clocks()
    return Now(datetime.fromtimestamp(clocks.wall(), UTC), clocks.mono(), clocks.boot())


class Fold(msgspec.Struct):
    """The shared fold and the viewer's own, as of the same event; `damaged` counts events that did not fit."""

    history: History
    trail: Trail
    damaged: int = 0

    @classmethod
    def empty(cls) -> Fold:
        """The fold of no events."""
        return cls(History(), Trail())

    def apply(self, event: Event) -> None:
        """Fold one event, once; one that contradicts the journal before it is counted, never raised."""
        if event.seq <= self.history.seq:
            return  # read twice: glued records, a journal put back by hand
        try:
            self.history.apply(event)
            self.trail.apply(event, self.history)
        except (LookupError, ValueError, TypeError, AttributeError, OverflowError, msgspec.MsgspecError):
            self.damaged += 1


class Bridge:
    """A session as a viewer reads it: `poll` says whether anything changed."""

    replay = False

    def __init__(
        self,
        folder: Path,
        *,
        now: Callable[[], Now] = machine_now,
        alive: Callable[[Path], bool | None] | None = None,
    ) -> None:
        self.folder = folder
        self.name = folder.name
        self.now = now
        self.reader = JournalIndex(folder / layout.JOURNAL)
        self.telemetry = Telemetry(folder / layout.TELEMETRY)
        self.files = SessionFiles(folder)
        self.fold = Fold.empty()
        self._alive = alive or _lock_held
        self.engine_alive: bool | None = None
        self.behind = False
        self._reading: Iterator[Event] | None = None
        self.note = ""  # what the engine waits for, where its record cannot say it yet
        self._held: Now | None = None

    @property
    def cursor(self) -> int:
        """How many events are folded in."""
        return len(self.reader)

    @property
    def held(self) -> bool:
        """The screen is frozen: time stands still for this viewer, and nothing is read."""
        return self._held is not None

    def hold(self, still: bool) -> None:
        """Freeze the moment, or go on."""
        self._held = self.now() if still else None

    def poll(self, within_s: float = math.inf) -> bool:
        """Fold what the journal gained and read the telemetry; true where the journal or the engine brought news.

        Readings alone are none: where no clock ticks, nothing shall be drawn for them. After `within_s` the rest is
        left to the next call, and `behind` is true.
        """
        if self.held:
            return False
        changed = self._read(within_s)
        self.telemetry.poll()
        alive = self._alive(self.folder) if self._in_question() else False
        note = _note_of(self.folder) if alive else ""
        if (alive, note) != (self.engine_alive, self.note):
            self.engine_alive, self.note, changed = alive, note, True
        return changed

    @property
    def share_read(self) -> float:
        """How much of the journal is folded in, for a long one's first reading."""
        return self.reader.share_read

    def _read(self, within_s: float) -> bool:
        end, changed = time.monotonic() + within_s, False
        self._reading = self._reading or self.reader.poll()
        for event in self._reading:
            if self.reader.restarted:
                self._forget()
                self.reader.restarted = False
            self._take(event)
            changed = True
            if time.monotonic() > end:
                self.behind = True
                return True
        self._reading, self.behind = None, False
        return changed

    def _take(self, event: Event) -> None:
        self.fold.apply(event)

    def _forget(self) -> None:
        """The journal was replaced."""
        self.fold = Fold.empty()

    def event_age_s(self) -> float | None:
        """Seconds since the last event, never negative; monotonic on the machine that wrote it."""
        history = self.fold.history
        return self._age(history.last_boot, history.last_mono, history.last_t)

    def heartbeat_age_s(self) -> float | None:
        """Seconds since the last sign of life: telemetry or event, whichever is younger."""
        ages = [self.event_age_s(), self._age(self.telemetry.boot, self.telemetry.mono, self.telemetry.t)]
        known = [age for age in ages if age is not None]
        return min(known) if known else None

    def send(self, what: str, body: dict[str, Any], who: str) -> str:
        """Put a request into the session's inbox and return its id; raises OSError."""
        return inbox.send(self.folder, cast("inbox.Kind", what), body, who=who)

    def place(self) -> str:
        """Where a replay stands; a live view has no place."""
        return ""

    def close(self) -> None:
        """Let go of the files."""
        self.reader.close()

    def _in_question(self) -> bool:
        return self.fold.history.state not in ENDED

    def _age(self, boot: str, mono: float, stamp: str) -> float | None:
        now = self._held or self.now()
        if mono and (not boot or boot == now.boot) and now.mono >= mono:
            return now.mono - mono
        return seconds_since(stamp, now.wall.timestamp()) if stamp else None


def _lock_held(folder: Path) -> bool | None:
    """Whether an engine holds the session's lock."""
    return engine_of(folder) is not None


def _note_of(folder: Path) -> str:
    holder = engine_of(folder)
    return holder.note if holder is not None else ""
