"""The bound of a session's folder: the oldest candidates' bulky files go first, the record and the best never."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

NEWEST_BUILDS, NEWEST_CANDIDATES = 128, 8  # these stay
RECOUNT_EVERY = 32  # writes until the builds, which come without telling, are counted again
_BLOCK = 4096
_FULL, _ROOMY = 0.9, 0.75
# What a candidate keeps for as long as it can: small, and enough to build it again.
_KEPT_STEMS = ("schedule", "kernel", "feedback")


class DiskBound:
    """Counts what a session's folder holds and prunes it below `limit_bytes`.

    `protected` names the candidates whose folders stay whole (the best and its ancestors). Builds are a
    cache: the oldest go, but those that `in_use` names by their hash, and come back when they are needed.
    """

    def __init__(self, folder: Path, limit_bytes: int, protected: Callable[[], frozenset[int]]) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes
        self.protected = protected
        self.in_use: Callable[[], frozenset[str]] = frozenset
        self._candidates = disk_bytes(folder / "candidates")
        self._builds = disk_bytes(folder / "build")
        self._writes = 0
        self._lean: set[int] = set()  # candidates without bulky files

    @property
    def used_bytes(self) -> int:
        """What the folder holds by this count, in whole blocks."""
        top = 0
        for folder in (self.folder, self.folder / "best", self.folder / "inbox"):
            for entry in _files(folder):
                with contextlib.suppress(OSError):
                    top += _blocks(entry.stat(follow_symlinks=False).st_size)
        return self._candidates + self._builds + top

    def wrote(self, size_bytes: int) -> None:
        """Count a candidate's file that was written; prune where the folder nears its limit."""
        self._candidates += _blocks(size_bytes)
        self._writes += 1
        if self._writes % RECOUNT_EVERY == 0:
            self._builds = disk_bytes(self.folder / "build")
        if self.used_bytes > _FULL * self.limit_bytes:
            self.prune()

    def prune(self) -> None:
        """Remove until the folder is well below the limit, or nothing is left that may go."""
        self._candidates = disk_bytes(self.folder / "candidates")
        self._prune_builds()
        protected = self.protected()
        numbers = [number for number in _numbers(self.folder / "candidates") if number not in protected]
        older = numbers[:-NEWEST_CANDIDATES]
        for number in older:
            if not self._too_full():
                break
            if number not in self._lean:
                self._candidates -= _remove_bulky(self.folder / "candidates" / str(number))
                self._lean.add(number)
        for number in older:
            if not self._too_full():
                break
            folder = self.folder / "candidates" / str(number)
            self._candidates -= disk_bytes(folder)
            shutil.rmtree(folder, ignore_errors=True)

    def _too_full(self) -> bool:
        return self.used_bytes > _ROOMY * self.limit_bytes

    def _prune_builds(self) -> None:
        """Keep the cache of builds below a quarter of the limit: the newest, and what is in use."""
        used = self.in_use()
        entries = []
        for where, _, names in os.walk(self.folder / "build"):
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
            if index >= NEWEST_BUILDS and kept > self.limit_bytes / 4 and path.name not in used:
                path.unlink(missing_ok=True)
                kept -= size
        self._builds = disk_bytes(self.folder / "build")


def disk_bytes(folder: Path) -> int:
    """Bytes that a folder's files take, each rounded up to whole blocks, one block a folder."""
    total = 0
    for where, _, names in os.walk(folder):
        total += _BLOCK
        for name in names:
            try:
                total += _blocks(Path(where, name).lstat().st_size)
            except OSError:
                continue
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
        if entry.name.split(".")[0] not in _KEPT_STEMS:
            freed += _blocks(entry.stat(follow_symlinks=False).st_size)
            Path(entry.path).unlink(missing_ok=True)
    return freed
