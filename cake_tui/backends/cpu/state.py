"""What a kernel must leave as it was: threads, children, files, folder, environment, timers, limits, rounding."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

from cake_tui.backends.cpu.runtime import Runtime

_TASKS = Path("/proc/self/task")
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_LIMITS = (
    resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_DATA, resource.RLIMIT_STACK, resource.RLIMIT_NOFILE,
    resource.RLIMIT_FSIZE,
)  # fmt: skip


class ProcessState:
    """A reading of this process; `changed` compares with one taken now."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._then = self._read()

    def changed(self) -> str | None:
        """Say what differs from the reading at the start, or None."""
        now = self._read()
        differing = [
            f"{what} ({old} -> {now[what]})" if isinstance(old, int) and old < 1 << 20 else what
            for what, old in self._then.items()
            if old != now[what]
        ]
        return ", ".join(differing) or None

    def _read(self) -> dict[str, object]:
        library = self._runtime.library
        threads = os.listdir(_TASKS)  # noqa: PTH208 - names alone, at once after a run
        return {
            "threads": len(threads),
            "children": _children(threads),
            "open files": len(os.listdir("/proc/self/fd")),  # noqa: PTH208
            "working folder": os.getcwd(),  # noqa: PTH109
            "environment": library.cake_environment(),
            "signal handlers": library.cake_handlers(),
            "timers": sum(signal.getitimer(timer)[0] > 0 for timer in _TIMERS),  # one would end a later kernel's run
            "limits": tuple(resource.getrlimit(limit) for limit in _LIMITS),
            "mask of new files": _mask(),
            "rounding mode": library.cake_float_state(),
        }


def _mask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _children(threads: list[str]) -> int:
    """Count child processes, 0 where the kernel does not list them."""
    count = 0
    for thread in threads:
        try:
            count += len((_TASKS / thread / "children").read_bytes().split())
        except OSError:
            continue  # ended meanwhile, or not listed by this kernel
    return count


def mapped_bytes() -> int:
    """Return this process's address space in use."""
    return int(Path("/proc/self/statm").read_bytes().split()[0]) * os.sysconf("SC_PAGE_SIZE")
