"""The viewer's figures on a pty: ``python -m tests.tui.measure [--keep] [--seconds S] [PART...]``.

    wire      bytes a second with a candidate each second at three sizes, its CPU, the first screen
    rest      bytes in slow-link mode, and where nothing happens: paused, frozen, finished
    long      attaching to 20,000 candidates, key to screen there, its memory
    memory    resident size over 4,000 updates, without a terminal

All four take about four minutes on a machine that does nothing else. Figures go with --keep into
``tests/benchmarks/results.jsonl``.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cake_tui.model import event as ev
from cake_tui.store.lock import Lock
from cake_tui.tui.bridge import machine_now
from tests.benchmarks import record
from tests.tui.long import long_session
from tests.tui.pty_terminal import ROOT, PtyTerminal
from tests.tui.sample import Sample, running

SIZES = ((80, 24), (120, 40), (200, 60))
CANDIDATES, UPDATES = 20_000, 4_000
WANTED = {
    "80x24_bytes_s": "at most 4,000",
    "120x40_bytes_s": "at most 8,000",
    "200x60_bytes_s": "at most 16,000",
    "120x40_cpu_pct": "at most 2",
    "120x40_first_screen_bytes": "at most 50,000",
    "slow_link_bytes_s": "at most 1,000",
    "paused_bytes": "0",
    "frozen_bytes": "0",
    "finished_bytes": "0",
    "attach_20000_s": "at most 2",
    "key_to_screen_ms": "at most 100",
    "key_to_screen_worst_ms": "",
    "long_resident_mb": "at most 80",
    "resident_mb": "at most 80",
    "growth_mb": "rows of the last half",
}


def wire(folder: Path, seconds: float) -> dict[str, float]:
    """A run that ends a candidate each second."""
    found: dict[str, float] = {}
    with live(folder / "wire") as sample:
        for columns, rows in SIZES:
            with busy(sample), attached(sample, columns, rows) as terminal:
                name = f"{columns}x{rows}"
                found[f"{name}_first_screen_bytes"] = float(len(terminal.received))
                terminal.read(3.0)
                ticks, began = _ticks(terminal.process.pid), time.monotonic()
                found[f"{name}_bytes_s"] = _sent(terminal, seconds) / seconds
                found[f"{name}_cpu_pct"] = (_ticks(terminal.process.pid) - ticks) / (time.monotonic() - began)
    return found


def rest(folder: Path, seconds: float) -> dict[str, float]:
    """A bad link, and nothing to show; the heartbeat goes on wherever an engine would."""
    found: dict[str, float] = {}
    with live(folder / "rest") as sample:
        with busy(sample), attached(sample, 120, 40, "--slow-link") as terminal:
            terminal.read(3.0)
            found["slow_link_bytes_s"] = _sent(terminal, max(30.0, seconds)) / max(30.0, seconds)
        with busy(sample), attached(sample, 120, 40) as terminal:
            terminal.send(" ")
            terminal.wait_for("SCREEN FROZEN")
            terminal.settle(quiet=1.5)
            found["frozen_bytes"] = float(_sent(terminal, seconds))
        sample.put(ev.RequestTaken(id="p", who="bench", what="pause"))
        with busy(sample, candidates=0), attached(sample, 120, 40) as terminal:
            terminal.settle(quiet=1.5)
            found["paused_bytes"] = float(_sent(terminal, seconds))
        sample.put(ev.EngineEnded(state="done", reason="as many candidates as wanted"))
    with attached(sample, 120, 40) as terminal:
        terminal.settle(quiet=1.5)
        found["finished_bytes"] = float(_sent(terminal, seconds))
    return found


def long(folder: Path, seconds: float) -> dict[str, float]:
    """A day's run: attach, walk through its board, look at the memory."""
    sample = long_session(folder / "long" / "first", CANDIDATES, machine_now())
    sample.put(ev.RequestTaken(id="p", who="bench", what="pause"))  # no clock ticks: what comes is the key's answer
    sample.flush()
    times: list[float] = []
    with holding(sample):
        began = time.monotonic()
        with attached(sample, 120, 40) as terminal:
            attach = time.monotonic() - began
            terminal.settle(quiet=0.5)
            for keys, shown in (
                ("4", None),
                *[("G", None), ("o", None), ("g", None), ("\x1b[B", None), ("?", "esc close"), ("q", None)] * 5,
            ):
                times.append(_answer(terminal, keys, shown))
            resident = _resident_mb(terminal.process.pid)
    return {
        "attach_20000_s": attach,
        "key_to_screen_ms": 1000 * statistics.median(times),
        "key_to_screen_worst_ms": 1000 * max(times),
        "long_resident_mb": resident,
    }


def memory(folder: Path, seconds: float) -> dict[str, float]:
    """As many updates as an hour has, as fast as they go, in a process of their own."""
    command = [sys.executable, "-c", MEMORY, str(folder / "memory" / "first"), str(UPDATES)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    half, end = (float(word) for word in done.stdout.split())
    return {"resident_mb": end, "growth_mb": end - half}


MEMORY = """
import asyncio, sys
from pathlib import Path
from cake_tui.tui.app import CakeApp
from cake_tui.tui.bridge import Bridge
from tests.tui.measure import _resident_mb
from tests.tui.sample import Sample
import os
sample = Sample(Path(sys.argv[1]), candidates=100_000)
sample.run(50)
bridge = Bridge(sample.folder, now=sample.now, alive=lambda _: True)
async def go():
    app = CakeApp(bridge, you="sam")
    async with app.run_test(size=(120, 40)) as pilot:
        for update in range(int(sys.argv[2])):
            sample.run(1)
            sample.beat(1)
            app.tick()
            await asyncio.sleep(0)
            if update % 8 == 0:
                await pilot.pause()
            if update in (int(sys.argv[2]) // 2, int(sys.argv[2]) - 1):
                sys.__stdout__.write(f"{_resident_mb(os.getpid())} ")
asyncio.run(go())
"""
PARTS: dict[str, Callable[[Path, float], dict[str, float]]] = {
    "wire": wire,
    "rest": rest,
    "long": long,
    "memory": memory,
}


# -- what is measured ----------------------------------------------------------------------------------


@contextmanager
def live(folder: Path) -> Iterator[Sample]:
    """A session of this moment whose lock is held."""
    sample = running(folder / "first", 150, began=machine_now())
    with holding(sample):
        yield sample


@contextmanager
def holding(sample: Sample) -> Iterator[None]:
    """Hold the session's lock, as its engine does."""
    lock = Lock(sample.folder / "lock")
    if not lock.take():
        raise RuntimeError("the lock of a folder of our own is taken")
    lock.sign(what="first", who="bench")
    try:
        yield
    finally:
        lock.release()


@contextmanager
def busy(sample: Sample, candidates: int = 1) -> Iterator[None]:
    """So many candidates and a heartbeat each second."""
    over = threading.Event()

    def go_on() -> None:
        while not over.wait(1.0):
            sample.clock = max(sample.clock, time.monotonic())
            if candidates:
                sample.run(candidates)
            sample.beat(1)

    worker = threading.Thread(target=go_on, daemon=True)
    worker.start()
    try:
        yield
    finally:
        over.set()
        worker.join()


@contextmanager
def attached(sample: Sample, columns: int, rows: int, *flags: str) -> Iterator[PtyTerminal]:
    """A viewer whose first screen is there."""
    arguments = ("attach", "first", "--sessions", str(sample.folder.parent), *flags)
    with PtyTerminal(*arguments, columns=columns, rows=rows) as terminal:
        terminal.wait_for("best #")
        yield terminal


def _sent(terminal: PtyTerminal, seconds: float) -> int:
    began, sent = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        sent += len(terminal.read(min(0.5, max(0.01, began + seconds - time.monotonic()))))
    return sent


def _answer(terminal: PtyTerminal, keys: str, shown: str | None) -> float:
    """Seconds from a key to the first bytes of its answer."""
    terminal.settle(quiet=0.4)
    began = time.monotonic()
    terminal.send(keys)
    while not terminal.read_some(1.0):
        if time.monotonic() - began > 5.0:
            raise RuntimeError(f"no answer to {keys!r}")
    took = time.monotonic() - began
    if shown is not None:
        terminal.wait_for(shown)
    return took


def _ticks(pid: int) -> float:
    """CPU time in hundredths of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return float(fields[11]) + float(fields[12])


def _resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * 4096 / 1e6


def main() -> None:
    """Print what is wanted, what is, and what was."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--seconds", type=float, default=10.0, help="of each reading")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for part in args.parts or PARTS:
            figures |= PARTS[part](Path(folder), args.seconds)
    record.show("viewer", figures, WANTED)
    if args.keep:
        record.keep("viewer", {name: round(value, 2) for name, value in figures.items()})


if __name__ == "__main__":
    main()
