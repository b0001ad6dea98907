"""The index of a growing journal: where each event begins and its kind, so that any one is read again on demand."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from cake_tui.model.event import Event
from cake_tui.store.reading import JournalReader, Skipped, decode


class JournalIndex:
    """A cursor over a journal file: `poll` yields what came since; ``event(i)`` reads one again.

    `restarted` is true after the file was replaced or cut below what had been read: fold anew.
    """

    def __init__(self, path: Path) -> None:
        self.restarted = False
        self._reader = JournalReader(path)
        self._starts = array("Q")
        self._kinds = array("H")
        self._parts = array("B")  # which event of its line, where a damaged line holds several
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._file: BinaryIO | None = None

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def skipped(self) -> int:
        """Lines that hold no event of this version."""
        return self._reader.skipped.lines + self._reader.skipped.newer

    @property
    def share_read(self) -> float:
        """Read bytes over the file's."""
        try:
            size = self._reader.path.stat().st_size
        except OSError:
            return 1.0
        return min(1.0, self._reader.offset / size) if size else 1.0

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def poll(self) -> Iterator[Event]:
        """Yield the events that were appended since the last call; an unreadable file yields none."""
        self.restarted = False
        try:
            yield from self._new()
        except OSError:
            return

    def kind(self, index: int) -> str:
        """Name of an event's kind without reading it."""
        return self._names[self._kinds[index]]

    def event(self, index: int) -> Event | None:
        """Read one event again; None where the file no longer gives it."""
        if not 0 <= index < len(self._starts):
            return None
        try:
            self._file = self._file or self._reader.path.open("rb")
            self._file.seek(self._starts[index])
            line = self._file.readline()
        except OSError:
            return None
        found, part = decode(line.removesuffix(b"\n")), self._parts[index]
        return found[part] if part < len(found) else None

    def _new(self) -> Iterator[Event]:
        restarts, last = self._reader.restarts, -1
        for event in self._reader.read():
            if self._reader.restarts != restarts:
                restarts = self._reader.restarts
                self._begin_anew()
            start = self._reader.start
            part = self._parts[-1] + 1 if start == last else 0
            last = start
            if part > 255:
                continue
            self._starts.append(start)
            self._kinds.append(self._number(type(event).__name__))
            self._parts.append(part)
            yield event

    def _begin_anew(self) -> None:
        self.close()
        del self._starts[:], self._kinds[:], self._parts[:]
        self._reader.skipped = Skipped()
        self.restarted = True

    def _number(self, name: str) -> int:
        number = self._numbers.setdefault(name, len(self._names))
        if number == len(self._names):
            self._names.append(name)
        return number
