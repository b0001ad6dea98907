"""What each move does to the measured time on this CPU: median gain in pairs beside the noise of self-pairs.

    python -m tests.benchmarks.moves [--keep]

A move counts as felt where its gain is beyond three times the standard error of the self-pairs' median.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
from collections.abc import Iterator
from typing import Any

from cake_tui import kernels, menu
from cake_tui.cli._device import choose
from cake_tui.cli._trial import RUN_LIMIT_S, SERIES_S, Trial, trial
from cake_tui.config import Gating, Settings
from cake_tui.menu import Menu
from cake_tui.model.jobs import Subject, Timed, TimePairs
from cake_tui.model.schedule import KnobValue, Schedule
from cake_tui.steps.measure import ratios
from tests.benchmarks import record

SERIES, PAIRS = 8, 4
# move, structure it starts from, knobs laid over that structure's defaults
TUNED = {"vector": 16, "thread_m": 8, "thread_n": 2}
WIDE = {**TUNED, "thread_m": 4, "threads_x": 32, "threads_y": 32, "block_k": 512}  # staged rows 4 KB apart
CASES: tuple[tuple[str, str, dict[str, KnobValue]], ...] = (
    ("apply_tiling(128)", "naive", {}),
    ("apply_vectorize(16)", "packed", {"vector": 4, "thread_m": 4, "thread_n": 2}),
    ("apply_register_block(8, 2)", "packed", {"vector": 16, "thread_m": 2, "thread_n": 1}),
    ("apply_unroll(8)", "packed", {"vector": 1, "thread_m": 4, "thread_n": 1, "unroll": 1}),
    ("change_block_config(2, 2)", "packed", {**TUNED, "thread_m": 14, "threads_x": 32, "threads_y": 32}),
    ("apply_shared_memory_load()", "tiled", {**TUNED, "shared": False}),
    ("avoid_bank_conflict(16)", "tiled", {**WIDE, "shared": True, "pad": 0}),
    ("split_k(4)", "naive", {}),
)


def gains(one: Trial, holder: Subject, candidate: Subject, seed: int) -> list[float]:
    """ln(t_before / t_after) of every pair."""
    rng = random.Random(seed)
    found: list[float] = []
    for _ in range(SERIES):
        job = TimePairs(one.problem, holder, candidate, PAIRS, rng.getrandbits(31), Gating().sample_ms, RUN_LIMIT_S)
        reply = one.executor.evaluate(job, SERIES_S)
        if not isinstance(reply, Timed):
            raise SystemExit(f"could not be timed: {reply}")
        found += ratios(reply.series)
    return found


def measured(one: Trial, actions: Menu) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each move with its median gain and the noise beside it."""
    for text, structure, knobs in CASES:
        before: Schedule = actions.default(structure).with_knobs(knobs)
        after, _ = actions.apply(before, (actions.parse(text),))
        old, _ = one.build(one.on_paper(before).full)
        new, _ = one.build(one.on_paper(after).full)
        noise = statistics.stdev(gains(one, old, old, 1))
        gain = statistics.median(gains(one, old, new, 2))
        error = 1.25 * noise / math.sqrt(SERIES * PAIRS)  # of a median of normal values
        yield (
            text,
            {"from": before.text, "times_as_fast": math.exp(gain), "error": error, "felt": abs(gain) > 3 * error},
        )


def main() -> int:
    """Print what each move did; 1 where one was not felt."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    chosen = choose(argparse.Namespace(backend="cpu", device=None))
    problem = kernels.load("matmul_bias_relu", target="c")
    actions = menu.load(None, problem, chosen.device)
    figures: dict[str, Any] = {}
    unfelt = 0
    with trial(problem, chosen, "moves benchmark", Settings().building.smoke_fraction) as one:
        for text, found in measured(one, actions):
            word = "" if found["felt"] else "  not beyond the noise"
            print(f"{text:30} {found['times_as_fast']:7.3f} x ± {found['error']:.2%}{word}   from {found['from']}")
            figures[text] = found["times_as_fast"]
            unfelt += not found["felt"]
    if args.keep:
        record.keep("moves", figures)
    return 1 if unfelt else 0


if __name__ == "__main__":
    sys.exit(main())
