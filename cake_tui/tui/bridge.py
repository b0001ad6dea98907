"""Between a session's folder and the panes: polls, folds, moves a replay's cursor, and sends requests.

Live, attached late and replayed are one path: a `Fold` of the journal's events up to a cursor.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import msgspec

from cake_tui.model import layout
from cake_tui.model.event import CandidateEnded, Event
from cake_tui.model.history import History
from cake_tui.model.state import ENDED
from cake_tui.store import inbox
from cake_tui.store.clock import Clocks, seconds_since
from cake_tui.store.lock import engine_of
from cake_tui.tui.files import SessionFiles
from cake_tui.tui.index import JournalIndex
from cake_tui.tui.telemetry import Telemetry
from cake_tui.tui.trail import Trail

CHECKPOINT_BYTES = 24 << 20  # what all checkpoints of a replay may take together


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

    @property
    def cursor(self) -> int:
        """How many events are folded in."""
        return len(self.reader)

    def poll(self) -> bool:
        """Fold what the journal gained and read the telemetry; true where something new is there."""
        changed = False
        for event in self.reader.poll():
            if self.reader.restarted:
                self.fold, self.reader.restarted = Fold.empty(), False
            self.fold.apply(event)
            changed = True
        changed = self.telemetry.poll() or changed
        alive = self._alive(self.folder) if self._in_question() else False
        if alive != self.engine_alive:
            self.engine_alive, changed = alive, True
        return changed

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

    def close(self) -> None:
        """Let go of the files."""
        self.reader.close()

    def _in_question(self) -> bool:
        return self.fold.history.state not in ENDED

    def _age(self, boot: str, mono: float, stamp: str) -> float | None:
        now = self.now()
        if mono and (not boot or boot == now.boot) and now.mono >= mono:
            return now.mono - mono
        return seconds_since(stamp, now.wall.timestamp()) if stamp else None


class ReplayBridge(Bridge):
    """A finished (or running) session under a cursor: `step` and `seek` fold up to another event."""

    replay = True

    def __init__(self, folder: Path, *, now: Callable[[], Now] = machine_now) -> None:
        super().__init__(folder, now=now, alive=lambda _: None)
        self._cursor = 0
        self._ends: list[int] = []  # cursors right after each candidate's end
        self._saved: list[tuple[int, bytes]] = []
        self._telemetry_read = False

    @property
    def cursor(self) -> int:
        """How many events are folded in."""
        return self._cursor

    def poll(self) -> bool:
        """Note what the journal gained; the fold moves only by `step` and `seek` (at first to the end)."""
        first = not self._telemetry_read
        for event in self.reader.poll():
            if self.reader.restarted:
                self.fold, self._ends, self._saved, self.reader.restarted = Fold.empty(), [], [], False
            if isinstance(event, CandidateEnded):
                self._ends.append(len(self.reader))
            if first:
                self.fold.apply(event)
        if first:
            self._telemetry_read = True
            self._cursor = len(self.reader)
            self.telemetry.poll()
        return first

    def step(self, by: int) -> bool:
        """Move to the end of the next (or previous) candidate; false at either end of the journal."""
        stops = [0, *self._ends]
        if stops[-1] != len(self.reader):
            stops.append(len(self.reader))
        here = bisect.bisect_right(stops, self._cursor) - 1
        if by < 0 and stops[here] != self._cursor:
            here += 1
        target = stops[min(len(stops) - 1, max(0, here + by))]
        return self.seek(target)

    def seek(self, cursor: int) -> bool:
        """Fold exactly the first `cursor` events."""
        cursor = min(len(self.reader), max(0, cursor))
        if cursor == self._cursor:
            return False
        if cursor < self._cursor:
            self._restore(cursor)
        for index in range(self._cursor, cursor):
            self._save_sometimes(index)
            event = self.reader.event(index)
            if event is not None:
                self.fold.apply(event)
        self._cursor = cursor
        return True

    def _restore(self, cursor: int) -> None:
        saved = [entry for entry in self._saved if entry[0] <= cursor]
        if saved:
            self._cursor, self.fold = saved[-1][0], msgspec.msgpack.decode(saved[-1][1], type=Fold)
        else:
            self._cursor, self.fold = 0, Fold.empty()

    def _save_sometimes(self, index: int) -> None:
        spacing = max(256, len(self.reader) // 16)
        if index % spacing or index == 0 or any(at == index for at, _ in self._saved):
            return
        state = msgspec.msgpack.encode(self.fold)
        if sum(len(data) for _, data in self._saved) + len(state) <= CHECKPOINT_BYTES:
            self._saved.append((index, state))
            self._saved.sort(key=lambda entry: entry[0])


def _lock_held(folder: Path) -> bool | None:
    """Whether an engine holds the session's lock."""
    return engine_of(folder) is not None
