"""Files that grow without end, bounded: rotated while their writer runs, and alive after somebody deletes them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from cake_tui.store.files import NO_SPACE, open_private


class RotatingFile:
    """Appends lines; at `limit_bytes` the file becomes ``<name>.1``, whose predecessor goes.

    A deleted file is noticed at the next write: writing goes on in a new one and the space is free. A full
    disk loses lines, never the writer; `lost` counts them.
    """

    def __init__(self, path: Path, limit_bytes: int, on_open: Callable[[int], None] | None = None) -> None:
        self.path = path
        self.limit_bytes = limit_bytes
        self.lost = 0
        self._on_open = on_open
        self._file = -1
        self._size = 0
        with contextlib.suppress(OSError):  # whatever stands in its place, each write tries again
            self._reopen()

    def write(self, line: str) -> None:
        """Append one line; its end is added."""
        content = line.encode("utf-8", "replace") + b"\n"
        try:
            self.look()
            if self._size + len(content) > self.limit_bytes and self._size > 0:
                self._rotate()
            self._size += os.write(self._file, content)
        except OSError as error:
            self.lost += 1
            if error.errno not in NO_SPACE:
                self._file = self._close()

    def look(self) -> None:
        """Notice a file that was deleted, moved or has grown by other hands (children's stderr)."""
        if self._file >= 0:
            try:
                status = self.path.lstat()
                ours = os.fstat(self._file)
                if (status.st_ino, status.st_dev) == (ours.st_ino, ours.st_dev):
                    self._size = ours.st_size
                    return
            except FileNotFoundError:
                pass
        self._reopen()

    def close(self) -> None:
        """Close the file."""
        self._file = self._close()

    def _rotate(self) -> None:
        self.path.replace(self.path.with_name(self.path.name + ".1"))
        self._reopen()

    def _reopen(self) -> None:
        self._file = self._close()
        self._file = open_private(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._size = os.fstat(self._file).st_size
        if self._on_open is not None:
            self._on_open(self._file)

    def _close(self) -> int:
        if self._file >= 0:
            os.close(self._file)
        return -1
