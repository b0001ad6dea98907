"""Ends what an engine leaves behind: waits for the end of its input, then kills every process that bears the mark.

Run as a script by a process of its own, with the standard library alone. The mark is a variable in the
environment of every compiler and evaluator, so even what left its process group is found.
"""

import os
import signal
import sys
import time

NAME = "CAKE_TUI_CHILD"  # of one executor
EVALUATOR = "CAKE_TUI_EVALUATOR"  # of one evaluator
LIMIT_S = 5.0


def sweep(name: str, mark: str) -> int:
    """Kill every process whose environment holds the mark; return how many were met, until none is left."""
    wanted = f"{name}={mark}".encode()
    met: set[int] = set()
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        alive = [pid for pid in _marked(wanted) if pid != os.getpid()]
        if not alive:
            break
        for pid in alive:
            met.add(pid)
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        time.sleep(0.005)
    return len(met)


def _marked(wanted: bytes) -> list[int]:
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - no pathlib, to start quickly
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123
                if wanted in file.read().split(b"\0"):
                    found.append(int(name))
        except OSError:
            continue  # ended meanwhile, or somebody else's
    return found


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    while os.read(0, 4096):
        pass
    sweep(NAME, sys.argv[1])
