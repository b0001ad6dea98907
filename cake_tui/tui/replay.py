"""A record under a cursor: step, jump to a candidate, a time or what a person did, and play at a speed."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from pathlib import Path

import msgspec

from cake_tui import figures
from cake_tui.errors import UserError
from cake_tui.model.event import Event
from cake_tui.tui.bridge import Bridge, Fold, Now, machine_now
from cake_tui.tui.moments import Moments

CHECKPOINT_BYTES = 24 << 20  # what all checkpoints of a replay may take together
ALMOST = 0.98  # of a record: from here on its first reading keeps a state to step back to
NEAR = 512  # events that a step back folds anew in a long record
SPEEDS = (1, 2, 5, 10, 30, 60, 300, 1800)
USUAL = 10


class ReplayBridge(Bridge):
    """A finished (or running) session; the fold moves only by `step`, `seek` and, while it plays, `poll`."""

    replay = True

    def __init__(self, folder: Path, *, now: Callable[[], Now] = machine_now) -> None:
        super().__init__(folder, now=now, alive=lambda _: None)
        self.moments = Moments()
        self.playing = False
        self.speed = USUAL
        self._cursor = 0
        self._saved: list[tuple[int, bytes]] = []
        self._near: tuple[int, bytes] | None = None  # a state shortly before where steps back have led
        self._begun = False
        self._played_to = 0.0  # seconds of the record
        self._looked_at = 0.0  # this machine's monotonic clock

    @property
    def cursor(self) -> int:
        """How many events are folded in."""
        return self._cursor

    def poll(self, within_s: float = math.inf) -> bool:
        """Note what the journal gained; at first fold it to the end, later what a playing record reaches."""
        self._read(within_s)
        if self.behind:
            return True
        if not self._begun:
            self._begun = True
            self._cursor = len(self.reader)
            self._read_telemetry()
            return True
        return self._play_on()

    def _take(self, event: Event) -> None:
        if not self._begun:
            if not self._near and len(self.reader) % NEAR == 0 and self.share_read > ALMOST:
                self._near = (len(self.reader) - 1, msgspec.msgpack.encode(self.fold))
            self.fold.apply(event)
        self.moments.add(event, None if self._begun else self.fold.history.elapsed_s)

    def _forget(self) -> None:
        super()._forget()
        self.moments, self._saved, self._near, self._cursor = Moments(), [], None, 0

    def place(self) -> str:
        """Where the cursor is, and whether it moves."""
        pace = f"playing {self.speed} ×, " if self.playing else ""
        return f"{pace}event {figures.count(self._cursor)} of {figures.count(len(self.reader))}"

    # -- playing ---------------------------------------------------------------------------------------

    def play(self, on: bool) -> None:
        """Go on by itself, from the beginning where the end is reached, or stand still."""
        self.playing = on
        if on and self._cursor >= len(self.reader):
            self.seek(0)
        self._looked_at, self._played_to = self.now().mono, self.moments.played_s(self._cursor)

    def faster(self, by: int) -> int:
        """The next speed up or down; returns it."""
        at = SPEEDS.index(self.speed) + by
        self.speed = SPEEDS[max(0, min(len(SPEEDS) - 1, at))]
        return self.speed

    def _play_on(self) -> bool:
        now = self.now().mono
        passed, self._looked_at = now - self._looked_at, now
        if not self.playing:
            return False
        self._played_to += passed * self.speed
        moved = self._fold_to(self.moments.at_played(self._played_to))
        if self._cursor >= len(self.reader):
            self.playing = False
            return True
        return moved

    # -- moving ----------------------------------------------------------------------------------------

    def step(self, by: int) -> bool:
        """Move to the end of the next (or previous) candidate; false at either end of the record."""
        return self._to_stop(self.moments.ends, by)

    def step_person(self, by: int) -> bool:
        """Move right behind the next (or previous) thing that a person did; false where there is none."""
        target = self.moments.person(self._cursor, by)
        return target is not None and self.seek(target)

    def go(self, text: str) -> int | None:
        """Move to ``#137``, ``event 700``, ``12m30s`` of running time or ``14:31:07`` UTC; raises UserError.

        Returns the candidate, where one was asked for.
        """
        target = self.moments.find(text)
        if target is None:
            raise UserError(f"{text}: not in this record; it {self.moments.extent()}")
        self.seek(target)
        return self.moments.candidate(text)

    def seek(self, cursor: int) -> bool:
        """Fold exactly the first `cursor` events; a playing record goes on from there."""
        moved = self._fold_to(cursor)
        self._played_to = self.moments.played_s(self._cursor)
        return moved

    def _to_stop(self, marks: list[int], by: int) -> bool:
        stops = [0, *marks]
        if stops[-1] != len(self.reader):
            stops.append(len(self.reader))
        here = bisect.bisect_right(stops, self._cursor) - 1
        if by < 0 and stops[here] != self._cursor:
            here += 1
        return self.seek(stops[min(len(stops) - 1, max(0, here + by))])

    def _fold_to(self, cursor: int) -> bool:
        cursor = min(len(self.reader), max(0, cursor))
        if cursor == self._cursor:
            return False
        back = cursor < self._cursor
        if back:
            self._restore(cursor)
        begin = self._cursor
        for index in range(begin, cursor):
            self._save_sometimes(index)
            if back and index == cursor - NEAR and index - begin > NEAR:
                self._near = (index, msgspec.msgpack.encode(self.fold))
            event = self.reader.event(index)
            if event is not None:
                self.fold.apply(event)
        self._cursor = cursor
        self._read_telemetry()
        return True

    def _read_telemetry(self) -> None:
        """Readings as they were at the cursor."""
        history = self.fold.history
        self.telemetry.rewind(history.last_boot, history.last_mono, history.last_t)

    def _restore(self, cursor: int) -> None:
        saved = [entry for entry in (*self._saved, self._near) if entry is not None and entry[0] <= cursor]
        if saved:
            self._cursor, state = max(saved, key=lambda entry: entry[0])
            self.fold = msgspec.msgpack.decode(state, type=Fold)
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

    def last_event(self) -> Event | None:
        """The event under the cursor."""
        return self.reader.event(self._cursor - 1)
