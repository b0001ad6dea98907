"""A viewer's eye on a session: the fold as of now, what is new, whether the engine lives. Reads, never writes."""

from __future__ import annotations

from pathlib import Path

from cake_tui.model.event import Event
from cake_tui.model.history import History
from cake_tui.store.lock import Holder, living_holder
from cake_tui.store.snapshot import fold
from cake_tui.store.telemetry import Beat, recent_beats

ENDED = ("done", "stopped", "failed")


class Follower:
    """Holds a session's history and keeps it current; `history` is a new value after a journal was replaced."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        made = fold(folder)
        self.history: History = made.history
        self.notices = made.notices
        self._reader = made.reader

    def poll(self) -> list[Event]:
        """Fold what was appended since the last call and return it, oldest first."""
        new: list[Event] = []
        restarts = self._reader.restarts
        for event in self._reader.read():
            if self._reader.restarts != restarts:
                restarts = self._reader.restarts
                self.history = History()
                new.clear()
            if event.seq > self.history.seq:
                self.history.apply(event)
                new.append(event)
        return new

    def engine(self) -> Holder | None:
        """Who runs the session now; None where no engine lives."""
        return living_holder(self.folder / "lock")

    def state(self) -> str:
        """``running``, ``paused``, ``done``, ``stopped``, ``failed``, or ``gone``: it should run and does not."""
        return state_of(self.history, self.engine())

    def beat(self) -> Beat | None:
        """The engine's last heartbeat on record."""
        found = recent_beats(self.folder)
        return found[-1] if found else None


def state_of(history: History, engine: Holder | None) -> str:
    """Return the state a person should read: the journal's, unless the engine it speaks of is gone."""
    if engine is None and history.state not in ENDED:
        return "gone"
    return history.state
