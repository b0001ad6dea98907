"""Figures of the viewer on a pty: ``python -m tests.tui.measure`` prints bytes a second, first screen, CPU and memory.

A candidate ends every second, as busy as a run gets; slow-link mode and a paused run beside it.
"""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path

from cake_tui.model import event as ev
from cake_tui.store.lock import Lock
from cake_tui.tui.bridge import machine_now
from tests.tui.pty_terminal import PtyTerminal
from tests.tui.sample import Sample, running

SECONDS = 12.0
SIZES = ((80, 24), (120, 40), (200, 60))


def figures(seconds: float = SECONDS) -> dict[str, float]:
    """Name and value of each figure; bytes, percent of a core, MB."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        sample = running(Path(folder) / "first", 150, began=machine_now())
        lock = Lock(sample.folder / "lock")
        if not lock.take():
            raise RuntimeError("the lock of a folder of our own is taken")
        lock.sign(what="first", who="bench")
        for columns, rows in SIZES:
            found |= _one(sample, columns, rows, seconds, f"{columns}x{rows}", busy=True)
        found |= _one(sample, 120, 40, max(seconds, 21.0), "slow link", "--slow-link", busy=True)
        sample.put(ev.RequestTaken(id="p", who="bench", what="pause"))
        found |= _one(sample, 120, 40, seconds / 2, "paused", busy=False)
        lock.release()
    return found


def _one(
    sample: Sample, columns: int, rows: int, seconds: float, name: str, *flags: str, busy: bool
) -> dict[str, float]:
    over = threading.Event()

    def live() -> None:
        while not over.wait(1.0):
            sample.clock = max(sample.clock, time.monotonic())
            if busy:
                sample.run(1)
            sample.beat(1)

    worker = threading.Thread(target=live, daemon=True)
    worker.start()
    arguments = ("attach", "first", "--sessions", str(sample.folder.parent), *flags)
    with PtyTerminal(*arguments, columns=columns, rows=rows) as terminal:
        terminal.wait_for("best #")
        terminal.read(3.0)
        first, ticks = len(terminal.received), _ticks(terminal.process.pid)
        began = time.monotonic()
        sent = 0
        while time.monotonic() - began < seconds:
            sent += len(terminal.read(0.5))
        took = time.monotonic() - began
        figures = {
            f"{name}: bytes a second": sent / took,
            f"{name}: first screen and 3 s, bytes": float(first),
            f"{name}: percent of a core": (_ticks(terminal.process.pid) - ticks) / took,
            f"{name}: resident MB": _resident_mb(terminal.process.pid),
        }
    over.set()
    worker.join()
    return figures


def _ticks(pid: int) -> float:
    """CPU time in hundredths of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return float(fields[11]) + float(fields[12])


def _resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * 4096 / 1e6


if __name__ == "__main__":
    for key, value in figures().items():
        print(f"{value:12.1f}  {key}")
