"""Reads a journal as it grows: where each event begins, its kind, and any one of them again on demand.

Only whole lines count; a torn tail waits for its rest. Lines that are no event of this version are skipped.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from cake_tui.model.event import Event
from cake_tui.store.reading import Skipped, decode

CHUNK = 1 << 20
LONGEST = 64 << 20  # a line beyond this is no event; reading goes on behind it


class JournalReader:
    """A cursor over a journal file: `poll` yields what came since; ``event(i)`` reads one again.

    `restarted` is true after the file was replaced or cut below what had been read: fold anew.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.starts = array("Q")
        self.kinds = array("H")
        self.parts = array("B")  # which event of its line, where a damaged line holds several
        self.names: list[str] = ["?"]
        self._index: dict[str, int] = {"?": 0}
        self.restarted = False
        self.passed_over = Skipped()
        self._file: BinaryIO | None = None
        self._inode = -1
        self._read_to = 0
        self._tail = b""

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def skipped(self) -> int:
        """Lines that hold no event of this version."""
        return self.passed_over.lines + self.passed_over.newer

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def poll(self) -> Iterator[Event]:
        """Yield the events that were appended since the last call; an unreadable file yields none."""
        self.restarted = False
        try:
            if not self._reopen():
                return
        except OSError:
            return
        file = self._file
        while file is not None:
            try:
                chunk = os.pread(file.fileno(), CHUNK, self._read_to)
            except OSError:
                return
            if not chunk:
                return
            yield from self._lines(chunk)
            if len(chunk) < CHUNK:
                return

    def kind(self, index: int) -> str:
        """Name of an event's kind without reading it."""
        return self.names[self.kinds[index]]

    def event(self, index: int) -> Event | None:
        """Read one event again; None where the file no longer gives it."""
        if self._file is None or not 0 <= index < len(self.starts):
            return None
        start = self.starts[index]
        end = self.starts[index + 1] if index + 1 < len(self.starts) else self._read_to - len(self._tail)
        if end <= start:  # the next event is of the same line
            end = next((at for at in self.starts[index + 1 :] if at > start), self._read_to - len(self._tail))
        try:
            line = os.pread(self._file.fileno(), end - start, start).split(b"\n", 1)[0]
        except OSError:
            return None
        found = decode(line)
        return found[self.parts[index]] if self.parts[index] < len(found) else None

    def _reopen(self) -> bool:
        """Open the file, or open it anew where it is another one or has lost what was read."""
        found = self.path.stat()
        if self._file is not None and (found.st_ino != self._inode or found.st_size < self._read_to):
            whole = self._read_to - len(self._tail)
            if found.st_ino == self._inode and found.st_size >= whole:
                # Only the torn tail went away: the writer set it aside.
                self._read_to, self._tail = whole, b""
                return True
            self.close()
            self.restarted = True
        if self._file is None:
            self._file = self.path.open("rb")
            self._inode = found.st_ino
            del self.starts[:], self.kinds[:], self.parts[:]
            self._read_to, self._tail, self.passed_over = 0, b"", Skipped()
        return found.st_size > self._read_to

    def _lines(self, chunk: bytes) -> Iterator[Event]:
        start = self._read_to - len(self._tail)
        self._read_to += len(chunk)
        *lines, self._tail = (self._tail + chunk).split(b"\n")
        if len(self._tail) > LONGEST:
            self._tail = b""
            self.passed_over.lines += 1
        for line in lines:
            for part, event in enumerate(decode(line, self.passed_over)[:256] if line else ()):
                name = type(event).__name__
                number = self._index.get(name)
                if number is None:
                    number = self._index[name] = len(self.names)
                    self.names.append(name)
                self.starts.append(start)
                self.kinds.append(number)
                self.parts.append(part)
                yield event
            start += len(line) + 1
