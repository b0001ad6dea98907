"""Empty files and folders made ahead: where making one is slow, a small write waits for little else.

On ext4 a new file costs up to milliseconds while others delete many, on a network a round trip; opening one that is
there and giving it its name is quick everywhere.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import threading
from collections import deque

from cake_tui.store.files import open_private

# Of a batch: what two rounds write while they are planned, and the thread hardly has its turn; the next is begun when
# so many are left.
FILES, FOLDERS = 64, 4
MOST_FOLDERS = 2 * FOLDERS + 4  # of what is in stock, with those of the batches; empty files take no room
CLOSE_S = 5.0  # a disk that answers nobody is not waited for


class Spares:
    """Private files and folders below `place`, kept in stock by a thread of its own; `place` is made and removed here.

    Where none is left, or none can be made, the caller makes its own: a full disk is told to whoever writes.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self._files: deque[str] = deque()
        self._folders: deque[str] = deque()
        self._batches = itertools.count()
        self._wanted = threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="spares", daemon=True)
        self._thread.start()
        self._wanted.set()

    def file(self) -> str | None:
        """Return the path of an empty file that is the caller's now."""
        return self._take(self._files, FILES)

    def folder(self) -> str | None:
        """Return the path of an empty folder that is the caller's now."""
        return self._take(self._folders, FOLDERS)

    def put_back(self, folder: str) -> None:
        """Take back a folder that was not needed."""
        self._folders.append(folder)

    def close(self) -> None:
        """Make no more, and remove what is left."""
        self._ended = True
        self._wanted.set()
        self._thread.join(CLOSE_S)
        shutil.rmtree(self._place, ignore_errors=True)

    def _take(self, stock: deque[str], enough: int) -> str | None:
        if len(stock) <= enough:
            self._wanted.set()
        return stock.popleft() if stock else None

    def _run(self) -> None:
        before: list[str] = []
        while self._wanted.wait() and not self._ended:
            self._wanted.clear()
            batch = f"{self._place}/{next(self._batches)}"
            with contextlib.suppress(OSError):
                self._fill(batch)
            before = [*filter(_is_in_use, before), batch]

    def _fill(self, batch: str) -> None:
        """Make a batch in a folder of its own: whoever takes from another one does not wait for this one's lock."""
        os.makedirs(batch, mode=0o700)  # noqa: PTH103 - strings throughout: paths cost more than some of the calls
        files = [f"{batch}/file-{at}" for at in range(FILES)] if len(self._files) <= FILES else []
        folders = [f"{batch}/folder-{at}" for at in range(FOLDERS)] if len(self._folders) <= FOLDERS else []
        for folder in folders:
            os.mkdir(folder, 0o700)  # noqa: PTH102
        for file in files:
            os.close(open_private(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        self._folders.extend(folders)
        self._files.extend(files)


def _is_in_use(batch: str) -> bool:
    """Remove the folder of a batch of which nothing is left."""
    try:
        os.rmdir(batch)  # noqa: PTH106
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
