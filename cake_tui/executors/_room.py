"""Space on the store's disk: what finds none waits for it and is done again, and no candidate pays for it."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from cake_tui.executors import OnFull

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
SAID = tuple(os.strerror(code) for code in NO_SPACE)
ENOUGH_BYTES = 16 << 20  # a compiler that fails beside so much room failed for a reason of its own

T = TypeVar("T")


class Room:
    """Tries again what found no space, once `on_full` returns; without it the error travels on."""

    def __init__(self, store: Path) -> None:
        self.on_full: OnFull | None = None
        self._store = store

    def keep_trying(self, path: Path, size: int, act: Callable[[], T]) -> T:
        """Return what `act`, which writes `path`, returns; raises its OSError where nobody waits for space."""
        while True:
            try:
                return act()
            except OSError as error:
                if error.errno not in NO_SPACE or self.on_full is None:
                    raise
                self.on_full(path, size, error)

    def waited(self, path: Path, log: str) -> bool:
        """Say whether a compiler failed since the disk was full, after waiting: its candidate is to be built again."""
        if self.on_full is None or not any(said in log for said in SAID):
            return False
        quota = SAID[1] in log
        if not quota and shutil.disk_usage(self._store).free >= ENOUGH_BYTES:
            return False
        self.on_full(path, 0, OSError(errno.ENOSPC, SAID[0], str(path)))
        return True
