"""What a candidate costs the engine in processor time, step by step: planning, moves, the agent and the record.

    python -m tests.benchmarks.planning [--schedules N] [--keep]

Each structure of matmul_bias_relu on ``c`` is planned with N schedules drawn with a fixed seed, each of them new to the
process as in a run; a step's figure is the median over the schedules, in milliseconds of this process' own time.
The agent proposes eight moves after 600 rows; a candidate's events are appended (the disk is not waited for) and
folded, and the snapshot, written at most once a second, is one of 600 rows.
With --keep the figures go into ``tests/benchmarks/results.jsonl``.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from cake_tui import ir, kernels, registry
from cake_tui.errors import Ended
from cake_tui.ir import cost, laws
from cake_tui.menu import Menu, load
from cake_tui.model.device import Device
from cake_tui.model.history import History
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Knob, Schedule
from cake_tui.steps import plan
from cake_tui.store import snapshot
from cake_tui.store.clock import Clocks
from cake_tui.store.journal import Journal
from cake_tui.store.reading import JournalReader
from tests.agents.surface_session import SURFACES, SurfaceSession
from tests.benchmarks import record
from tests.store import journals

DEVICE = Device(
    "cpu", "c", "wide", "cpu:wide", "x86-64-v4", 2, clock_mhz=2500.0, vector_bytes=64, vector_registers=32,
    l1_bytes=48 << 10, l2_bytes=1 << 20, l3_bytes=32 << 20,
)  # fmt: skip
SMOKE_FRACTION = 1 / 8
ROWS = 600
PAPER = ("build", "verify", "lower", "estimate", "text")


class Clock:
    """Milliseconds of this process' own time, by step."""

    def __init__(self) -> None:
        self.spent: dict[str, list[float]] = {}

    def time(self, step: str, call: Callable[[], Any]) -> Any:
        """Call, and put the time down under a step's name."""
        began = time.process_time()
        found = call()
        self.spent.setdefault(step, []).append(1e3 * (time.process_time() - began))
        return found

    def median(self, *steps: str) -> float:
        """The median of the sums of some steps."""
        return statistics.median(map(sum, zip(*(self.spent[step] for step in steps))))


def schedules(knobs: tuple[Knob, ...], structure: str, count: int) -> list[Schedule]:
    """Draw so many different schedules whose register block fits the device."""
    rng = random.Random(structure)
    found: dict[Schedule, None] = {}
    while len(found) < count:
        drawn = Schedule.of(structure, {knob.name: rng.choice(knob.values) for knob in knobs})
        sums, columns = int(drawn.knob("thread_m") or 1), int(drawn.knob("thread_n") or 1)
        if sums * columns + columns + 1 <= DEVICE.vector_registers:
            found[drawn] = None
        if not knobs:
            break
    return list(found)


def plan_one(clock: Clock, problem: Problem, schedule: Schedule) -> None:
    """Steps 3 to 6 of one candidate, as `steps/plan` takes them, then its smoke build."""
    program = clock.time("build", lambda: ir.build(problem, schedule, "c", DEVICE, runtime_sizes=False))
    refused = clock.time("verify", lambda: laws.verify(program, DEVICE, accumulation=problem.accumulation))
    if refused:
        raise SystemExit(f"{schedule.text}: {refused[0].text}")
    clock.time("lower", lambda: ir.lower(program, "c", DEVICE.arch, problem.shapes))
    clock.time("estimate", lambda: cost.estimate(program, DEVICE, problem.shapes))
    clock.time("text", lambda: ir.text_of(program))
    clock.time("smoke", lambda: plan.smoke_build(schedule, problem, DEVICE, SMOKE_FRACTION, {}))


def moves(menu: Menu, problem: Problem, count: int) -> float:
    """Median milliseconds of `Menu.apply` for one move from a packed schedule, refused moves included."""
    clock, rng = Clock(), random.Random(0)
    base = ir.default_schedule(problem, "packed", "c", DEVICE)
    possible = [move for action in menu.actions if action.usable and not action.reverts for move in action.moves()]
    for move in rng.sample(possible, min(count, len(possible))):
        clock.time("apply", lambda move=move: _applied(menu, base, move))  # type: ignore[misc]
    return clock.median("apply")


def _applied(menu: Menu, base: Schedule, move: Any) -> None:
    try:
        menu.apply(base, (move,))
    except Ended:
        return


def proposing() -> float:
    """Median milliseconds of the bandit's `propose` of eight after 600 rows, the first reading of them apart."""
    session = SurfaceSession(
        SURFACES["ridge"], registry.load("agents", "random")({}), 1, candidates=10**6, round=64, lawful=lambda _: None
    )
    while len(session.history.rows) < ROWS:
        list(session.round())
    agent, clock = registry.load("agents", "bandit")({}), Clock()
    agent.propose(session.history, session.menu, 8, random.Random(0))
    for seed in range(1, 21):
        session.history.round += 1
        clock.time("propose", lambda seed=seed: agent.propose(session.history, session.menu, 8, random.Random(seed)))  # type: ignore[misc]
    return clock.median("propose")


def recording(folder: Path) -> tuple[float, float]:
    """Milliseconds of a candidate's appends and folds, and of one snapshot of 600 rows."""
    journals.write(folder / "written.jsonl", ROWS)
    events = list(JournalReader(folder / "written.jsonl").read())
    journal, history, clock = Journal(folder / "journal.jsonl", Clocks()), History(), Clock()
    clock.time("append", lambda: [history.apply(journal.append(event, sync=False)[0]) for event in events])
    for _ in range(5):
        clock.time("snapshot", lambda: snapshot.write(folder, history, journal.size_bytes, len(events)))
    journal.close()
    return clock.median("append") / len(history.rows), clock.median("snapshot")


def figures(count: int) -> dict[str, float]:
    """Every step of every structure in milliseconds, then moves, agent and record."""
    device_problem = msgspec.structs.replace(kernels.load("matmul_bias_relu", target="c"), peers=())
    found: dict[str, float] = {}
    for structure in ir.structures(device_problem, "c"):
        clock = Clock()
        drawn = schedules(ir.knobs(device_problem, structure, "c", DEVICE), structure, count)
        plan_one(Clock(), device_problem, ir.default_schedule(device_problem, structure, "c", DEVICE))  # imports
        for schedule in drawn:
            plan_one(clock, device_problem, schedule)
        for step in (*PAPER, "smoke"):
            found[f"{structure}.{step}_ms"] = clock.median(step)
        found[f"{structure}.paper_ms"] = clock.median("build", "verify", "lower", "estimate")
    found["apply_ms"] = moves(load(None, device_problem, DEVICE), device_problem, 2 * count)
    found["propose_8_ms"] = proposing()
    with tempfile.TemporaryDirectory(prefix="cake-tui-bench-") as folder:
        found["append_and_fold_ms"], found["snapshot_ms"] = recording(Path(folder))
    return found


WANTED = {
    **{f"{name}.paper_ms": "at most 5" for name in ("tiled", "packed", "split_k")},
    **{f"{name}.smoke_ms": "at most 3" for name in ("tiled", "packed", "split_k")},
    "append_and_fold_ms": "at most 1",
}


def main() -> int:
    """Plan, print and perhaps keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=40, metavar="N")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    gc.collect()
    found = figures(args.schedules)
    record.show("planning", found, WANTED)
    if args.keep:
        record.keep("planning", found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
