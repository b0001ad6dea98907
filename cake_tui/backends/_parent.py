"""The tie of a backend's process to the one that started it: it ends when that one ends."""

from __future__ import annotations

import ctypes
import os
import signal

from cake_tui.errors import BUG

PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """Have the kernel end this process when its parent ends, however that happens."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the call
        os._exit(BUG)
