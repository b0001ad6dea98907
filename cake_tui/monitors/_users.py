"""Who uses a GPU beside us: processes that the driver lists, told from our own ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

EVERY_S = 0.5  # the driver takes milliseconds to list processes
DEEPEST = 64  # ancestors of a process

Listed = Callable[[], tuple[dict[int, float | None], str]]
"""Gives the bytes of each process on the device, and why where nobody tells."""


class Found(msgspec.Struct, frozen=True):
    """Processes of others and the device memory they hold; None where it is unknown, and why."""

    processes: int | None = None
    bytes: float | None = None
    why: str = ""


class Users:
    """Counts the processes that do not descend from `family`.

    In a container the driver may give the host's numbers, which say nothing here: then as many processes as hold
    the device open among our own are taken off the count, and whose the memory is stays unknown.
    """

    def __init__(self, family: int, proc: Path = Path("/proc")) -> None:
        self._family = family
        self._proc = proc
        self._due = float("-inf")
        self._found = Found()

    def look(self, listed: Listed) -> Found:
        """Return who is there; asked again after half a second."""
        now = time.monotonic()
        if now >= self._due:
            self._due = now + EVERY_S
            self._found = self._tell(*listed())
        return self._found

    def _tell(self, listed: dict[int, float | None], why: str) -> Found:
        if why:
            return Found(why=why)
        foreign = {pid: used for pid, used in listed.items() if not self._is_ours(pid)}
        if len(foreign) == len(listed) and foreign:
            holders = sum(self._holds_device(pid) for pid in self._descendants())
            if holders:
                return Found(max(0, len(foreign) - holders), None, "the driver numbers processes otherwise than here")
        used = [value for value in foreign.values() if value is not None]
        return Found(len(foreign), sum(used) if len(used) == len(foreign) else None, "" if used else "not told")

    def _is_ours(self, pid: int) -> bool:
        for _ in range(DEEPEST):
            if pid == self._family:
                return True
            parent = self._parent(pid)
            if parent is None or parent <= 1:
                return parent == self._family
            pid = parent
        return False

    def _parent(self, pid: int) -> int | None:
        try:
            words = (self._proc / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
            return int(words[1])
        except (OSError, ValueError, IndexError):
            return None

    def _descendants(self) -> list[int]:
        """Return our own processes, the family's head first."""
        found, at = [self._family], 0
        while at < len(found):
            try:
                tasks = list((self._proc / str(found[at]) / "task").iterdir())
                for task in tasks:
                    found += [int(word) for word in (task / "children").read_text().split()]
            except (OSError, ValueError):
                pass
            at += 1
        return found

    def _holds_device(self, pid: int) -> bool:
        try:
            return any(
                str(one.readlink()).startswith("/dev/nvidia") for one in (self._proc / str(pid) / "fd").iterdir()
            )
        except OSError:
            return False
