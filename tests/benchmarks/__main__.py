"""The product's figures: a real session on this CPU, the engine's own cost, the record and ``status``.

    python -m tests.benchmarks [session] [engine] [store] [--keep]

``session`` runs 150 effective candidates of matmul_bias_relu at 512 cubed (up to 8 minutes), ``engine`` a simulated
one (seconds), ``store`` writes and folds 20,000 candidates. Further ones are run by themselves:
``python -m tests.benchmarks.gate``, ``.agents``, ``.moves``, ``python -m tests.tui.measure``. With --keep the
figures go into ``tests/benchmarks/results.jsonl``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from cake_tui.model import event as ev
from cake_tui.model.history import History
from cake_tui.store import snapshot
from cake_tui.store.clock import Clocks
from cake_tui.store.journal import Journal
from cake_tui.store.reading import JournalReader
from cake_tui.store.snapshot import fold_new
from tests.benchmarks import record
from tests.store import journals

CANDIDATES = 150
FOLDED = 20_000
UNSTATED = (ev.PeerTimed, ev.NoiseCalibrated, ev.EvaluatorReplaced)


def session(folder: Path) -> dict[str, Any]:
    """A headless run as a person starts it; ratios are the product's own, timed side by side."""
    began = time.monotonic()
    words = ["run", "matmul_bias_relu", "--name", "bench", "--backend", "cpu", "--headless"]
    words += ["--candidates", str(CANDIDATES), "--sessions", str(folder)]
    command(*words)
    seconds = time.monotonic() - began
    shown = json.loads(command("show", "bench", "--json", "--sessions", str(folder)))
    history = History()
    fold_new(history, JournalReader(folder / "bench" / "journal.jsonl"))
    events = list(JournalReader(folder / "bench" / "journal.jsonl").read())
    return {
        "seconds": seconds,
        "best_us": shown["best"]["time_us"],
        "over_baseline": shown["speedup"]["baseline"],
        "over_numpy": shown["speedup"]["peer"].get("numpy"),
        "candidates_to_90_pct": to_90_percent(history),
        "first_measured_s": first(events, ev.Coarse, lambda event: True),
        "first_accepted_s": first(
            events, ev.CandidateEnded, lambda e: getattr(e.outcome, "verdict", None) == "accepted"
        ),
        "pair_noise_pct": shown["noise"]["pair_pct"],
        "failed": shown["candidates"]["failed"],
    }


def to_90_percent(history: History) -> int | None:
    """Effective candidates until one reached 90 % of the final speed."""
    final, effective = history.incumbent_us, 0
    for row in history.rows:
        effective += row.outcome in ("Measured", "WrongAnswer")
        if final and row.verdict in ("accepted", None) and row.time_us and final / row.time_us >= 0.9:
            return effective
    return None


def first(events: list[ev.Event], kind: type[ev.Event], holds: Any) -> float | None:
    """Seconds from the session's first event to the first such one."""
    start = events[0].mono
    return next((event.mono - start for event in events if isinstance(event, kind) and holds(event)), None)


def engine(folder: Path) -> dict[str, Any]:
    """What a candidate costs besides compiling and running: a simulated run, whose builds and runs take no time."""
    words = ["run", "matmul_bias_relu", "--name", "sim", "--backend", "simulated", "--headless", "--candidates", "200"]
    os.sync()  # what was run before may have left thousands of files to be written
    began = time.monotonic()
    command(*words, "--sessions", str(folder))
    seconds = time.monotonic() - began
    history = History()
    events = list(JournalReader(folder / "sim" / "journal.jsonl").read())
    for event in events:
        history.apply(event)
    first_round = next(at for at, event in enumerate(events) if isinstance(event, ev.RoundBegan))
    rounds = events[first_round:]
    spent_s = sum(_spent_s(before, event) for before, event in itertools.pairwise(rounds))
    return {
        "candidates": len(history.rows),
        "run_s": seconds,
        "overhead_ms_a_candidate": 1e3 * (rounds[-1].mono - rounds[0].mono - spent_s) / len(history.rows),
        "start_and_stop_s": seconds - (events[-1].mono - events[0].mono),
    }


def _spent_s(before: ev.Event, event: ev.Event) -> float:
    """Say how long kernels ran until this event; simulated compilers take no time.

    Peers, self-pairs and a run that was ended at its limit state no time of their own, but nothing else is done
    between the event before and theirs.
    """
    if isinstance(event, ev.CheckEnded | ev.Coarse | ev.GateEnded | ev.PlayedOff):
        return event.seconds
    return event.mono - before.mono if isinstance(event, UNSTATED) else 0.0


def store(folder: Path) -> dict[str, Any]:
    """Journal appends with sync, the fold of 20,000 candidates in a fresh process, and ``status``."""
    journal = Journal(folder / "append.jsonl", Clocks())
    began = time.perf_counter()
    for number in range(500):
        journal.append(ev.RoundBegan(round=number, size=4, incumbent=0))
    append_us = (time.perf_counter() - began) / 500 * 1e6
    journal.close()
    big = folder / "big"
    big.mkdir()
    journals.write(big / "journal.jsonl", FOLDED)
    code = (
        "import resource,sys,time;from pathlib import Path;from cake_tui.model.history import History;"
        "from cake_tui.store.reading import JournalReader;from cake_tui.store.snapshot import fold_new;"
        "m=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;t=time.perf_counter();h=History();"
        "fold_new(h,JournalReader(Path(sys.argv[1])));"
        "print(time.perf_counter()-t,len(h.rows),(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss-m)/1024)"
    )
    folds = [
        subprocess.run(
            [sys.executable, "-c", code, str(big / "journal.jsonl")], capture_output=True, text=True, check=True
        )
        for _ in range(3)
    ]
    fields = [list(map(float, one.stdout.split())) for one in folds]
    history, reader = History(), JournalReader(big / "journal.jsonl")
    fold_new(history, reader)
    snapshot.write(big, history, (big / "journal.jsonl").stat().st_size, reader.line)  # as the engine leaves it
    status = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "cake_tui", "status", "big", "--sessions", str(folder)],
            check=True,
            capture_output=True,
        )
        status.append(time.perf_counter() - began)
    return {
        "journal_append_us": append_us,
        "fold_20000_s": min(one[0] for one in fields),
        "fold_20000_mb": min(one[2] for one in fields),
        "status_ms": min(status) * 1e3,
    }


def command(*words: str) -> str:
    """Run a command in this process and return what it printed; its exit code must be 0."""
    done = subprocess.run([sys.executable, "-m", "cake_tui", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"cake-tui {' '.join(words)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


WANTED = {
    "seconds": "at most 480",
    "over_baseline": "at least 100",
    "over_numpy": "at least 1, aim 1.2",
    "first_measured_s": "at most 5",
    "first_accepted_s": "at most 20",
    "overhead_ms_a_candidate": "at most 10",
    "fold_20000_s": "at most 0.5",
    "fold_20000_mb": "at most 30",
    "status_ms": "at most 150",
}


def main() -> int:
    """Run the benchmarks that were named, or all three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", default=["engine", "store", "session"])
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    for name in args.names:
        with tempfile.TemporaryDirectory(prefix="cake-tui-bench-") as folder:
            figures = {"session": session, "engine": engine, "store": store}[name](Path(folder))
        record.show(name, figures, WANTED)
        if args.keep:
            record.keep(name, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
