"""The bound of a session's folder: the oldest candidates' bulky files go first, the record and the best never."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from cake_tui.model import layout
from cake_tui.store.spares import MOST_FOLDERS

NEWEST_BUILDS, NEWEST_CANDIDATES = 128, 8  # these stay; of builds that take half of the limit fewer do
FEWEST_BUILDS = 16
RECOUNT_EVERY = 16  # writes until what comes without telling is counted again
_BLOCK = 4096
_FULL, _ROOMY, _AGAIN = 0.9, 0.75, 0.02  # of the limit
# What a candidate keeps for as long as it can: small, and enough to build it again.
_KEPT = (layout.SCHEDULE, layout.FEEDBACK, *layout.SOURCES.values())


class Keep(msgspec.Struct, frozen=True):
    """Candidates that pruning spares: `whole` ones keep every file, of `lean` ones the folder and small files stay."""

    whole: frozenset[int] = frozenset()  # the best, and those in flight
    lean: frozenset[int] = frozenset()  # the best's ancestors


class DiskBound:
    """Counts what a session's folder holds and prunes it below `limit_bytes`.

    `keep` says what may not go. Builds are a cache: the oldest go, but those that `in_use` names by their
    hash, and come back when they are needed.
    """

    def __init__(self, folder: Path, limit_bytes: int, keep: Callable[[], Keep]) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes
        self.keep = keep
        self.in_use: Callable[[], frozenset[str]] = frozenset
        self._candidates = disk_bytes(folder / layout.CANDIDATES)
        self._builds = self._top = self._writes = 0
        self._recount()
        self._pruned_at = 0  # used bytes after the last pruning
        self._lean: set[int] = set()  # candidates without bulky files

    @property
    def used_bytes(self) -> int:
        """What the folder held when it was last counted, in whole blocks."""
        return self._candidates + self._builds + self._top

    def wrote(self, size_bytes: int) -> None:
        """Count a candidate's file that was written; prune where the folder nears its limit."""
        self._candidates += _blocks(size_bytes)
        self._writes += 1
        if self._writes % RECOUNT_EVERY == 0:
            self._recount()
        # Where hardly anything may go, trying again at every write would only cost time.
        limit = self.limit_bytes
        if self.used_bytes > max(_FULL * limit, self._pruned_at + _AGAIN * limit):
            self.prune()

    def _recount(self) -> None:
        """Count what others write: the executor's builds, the record, the logs, ``best/``; and folders in stock."""
        self._builds = disk_bytes(self.folder / layout.BUILDS)
        self._top = MOST_FOLDERS * _BLOCK
        for folder in (self.folder, self.folder / layout.BEST, self.folder / layout.INBOX):
            for entry in _files(folder):
                with contextlib.suppress(OSError):
                    self._top += _blocks(entry.stat(follow_symlinks=False).st_size)

    def prune(self) -> None:
        """Remove until the folder is well below the limit, or nothing is left that may go."""
        self._candidates = disk_bytes(self.folder / layout.CANDIDATES)
        self._recount()
        self._prune_builds()
        keep = self.keep()
        older = [number for number in _numbers(self.folder / layout.CANDIDATES) if number not in keep.whole]
        older = older[:-NEWEST_CANDIDATES]
        for number in older:
            if self._too_full() and number not in self._lean:
                self._candidates -= _remove_bulky(self.folder / layout.CANDIDATES / str(number))
                self._lean.add(number)
        for number in older:
            if not self._too_full():
                break
            if number not in keep.lean:
                folder = self.folder / layout.CANDIDATES / str(number)
                self._candidates -= disk_bytes(folder)
                shutil.rmtree(folder, ignore_errors=True)
        self._pruned_at = self.used_bytes

    def _too_full(self) -> bool:
        return self.used_bytes > _ROOMY * self.limit_bytes

    def _prune_builds(self) -> None:
        """Keep the cache of builds below a quarter of the limit: the newest, and what is in use."""
        used = self.in_use()
        entries = []
        for where, _, names in os.walk(self.folder / layout.BUILDS):
            for name in names:
                path = Path(where, name)
                try:
                    status = path.lstat()
                except OSError:
                    continue
                entries.append((status.st_mtime, _blocks(status.st_size), path))
        kept = 0
        for index, (_, size, path) in enumerate(sorted(entries, reverse=True)):
            kept += size
            newest = NEWEST_BUILDS if kept <= self.limit_bytes / 2 else FEWEST_BUILDS
            if index >= newest and kept > self.limit_bytes / 4 and path.name not in used:
                path.unlink(missing_ok=True)
                kept -= size
                with contextlib.suppress(OSError):  # not empty yet; an empty one takes a block too
                    path.parent.rmdir()
        self._builds = disk_bytes(self.folder / layout.BUILDS)


def disk_bytes(folder: Path | str) -> int:
    """Bytes that a folder's files take, each rounded up to whole blocks, one block a folder."""
    total = _BLOCK
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    total += disk_bytes(entry.path)
                else:
                    with contextlib.suppress(OSError):
                        total += _blocks(entry.stat(follow_symlinks=False).st_size)
    except OSError:
        return 0
    return total


def _blocks(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK


def _files(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if entry.is_file(follow_symlinks=False)]
    except OSError:
        return []


def _numbers(candidates: Path) -> list[int]:
    try:
        return sorted(int(path.name) for path in candidates.iterdir() if path.name.isdigit())
    except OSError:
        return []


def _remove_bulky(folder: Path) -> int:
    freed = 0
    for entry in _files(folder):
        if entry.name not in _KEPT:
            freed += _blocks(entry.stat(follow_symlinks=False).st_size)
            Path(entry.path).unlink(missing_ok=True)
    return freed
