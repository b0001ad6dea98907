"""Time as processes have it on a busy machine: at rest is who sleeps, and waiting for a processor is not its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.engine.scripted import descendants, states

TICK_S = 0.02


def asleep(pid: int) -> bool:
    """Tell whether no thread of a process runs, waits for a processor or waits for a disk."""
    return not states(pid) & {b"R", b"D"}


def rest(quiet_s: float, pids: Callable[[], Iterable[int]], look: Callable[[], Any], timeout_s: float = 60.0) -> Any:
    """Wait until `look` gives the same over so many seconds of the processes' sleep; return what it gave."""
    deadline = time.monotonic() + timeout_s
    seen, slept = look(), 0.0
    while slept < quiet_s:
        assert time.monotonic() < deadline, "it never came to rest"
        time.sleep(TICK_S)
        if (now := look()) != seen:
            seen, slept = now, 0.0
        elif all(map(asleep, pids())):
            slept += TICK_S
    return seen


def own_seconds(pid: int, done: Callable[[], Any], timeout_s: float = 60.0) -> float:
    """Ask `done` until it holds; return how long that took, without what the load of the machine added.

    That is what the threads of the process and of its descendants waited for a processor.
    """
    began, known, waited = time.monotonic(), {pid}, _Waited()
    waited.look(known)
    before = waited.seconds
    while not done():
        assert time.monotonic() - began < timeout_s, f"not within {timeout_s} s"
        known |= {child for one in known for child in descendants(one)}
        waited.look(known)
        time.sleep(0.005)
    return time.monotonic() - began - (waited.seconds - before)


class _Waited:
    """What threads waited for a processor; of one that has ended, what was seen last."""

    def __init__(self) -> None:
        self._of: dict[Path, float] = {}

    def look(self, pids: Iterable[int]) -> None:
        for pid in pids:
            for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
                self._of[path] = max(_waited_s(path), self._of.get(path, 0.0))

    @property
    def seconds(self) -> float:
        return sum(self._of.values())


def _waited_s(path: Path) -> float:
    # "ran waited slices", the first two in ns: Documentation/scheduler/sched-stats of Linux
    try:
        return int(path.read_bytes().split()[1]) * 1e-9
    except (OSError, IndexError):  # it ended meanwhile, or the kernel does not count
        return 0.0
