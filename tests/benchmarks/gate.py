"""The gate on this machine: a kernel against itself, against one made slower, and that one's holder made faster.

    python -m tests.benchmarks.gate [--backend cpu|cuda] [--comparisons 100] [--slower 30] [--faster 30] [--keep]

Wanted: at most 1 of 100 self-comparisons accepted, the slower kernel never, the faster one 9 times of 10. With
--keep the figures are appended to a file with machine, commit and date, and printed beside the last ones there.
The slower kernel, by 2 % on a CPU and 1 % on a GPU, is the same one with an empty loop behind each task or in each
thread, its length calibrated by measuring.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import random
import statistics
import sys
import time
from dataclasses import dataclass

import msgspec

from cake_tui import ir, kernels
from cake_tui.cli._device import choose, monitor_of
from cake_tui.cli._trial import RUN_LIMIT_S, SERIES_S, Trial, trial
from cake_tui.config import Gating, Settings
from cake_tui.errors import UserError
from cake_tui.model.jobs import Subject, Timed, TimePairs
from cake_tui.model.lowered import Lowered
from cake_tui.model.measure import Series
from cake_tui.steps.gate import gate
from cake_tui.steps.measure import Ask, Take, answer, ratios
from cake_tui.steps.noise import Guard, calibrate
from tests.benchmarks import record

CALIBRATION_SERIES = 24
STEPS = 10  # of the bisection
CLOSE = 0.15  # of the difference wanted


@dataclass(frozen=True)
class Fast:
    """The kernel that is slowed down on one backend."""

    structure: str
    knobs: dict[str, int | bool]
    slower: float
    first_spin: int  # iterations of the empty loop, to begin with


SPINS = {  # what one iteration does: something that no compiler takes away
    "c": '__asm__ volatile("" : : "r"(spin));',
    "cuda": 'asm volatile("membar.cta;" : : : "memory");',
}
FAST = {
    "cpu": Fast("packed", {"vector": 16, "thread_m": 8, "thread_n": 2}, 0.02, 500),
    "cuda": Fast("warp_specialized", {}, 0.01, 200),
}


def slowed(lowered: Lowered, spin: int) -> Lowered:
    """Return the same kernel with an empty loop of `spin` iterations at the end of its last function."""
    body, brace, rest = lowered.source.rpartition("}")
    loop = f"  for (int spin = 0; spin < {spin}; spin++) {{ {SPINS[lowered.target]} }}\n"
    return msgspec.structs.replace(lowered, source=body + loop + brace + rest)


def pairs_of(one: Trial, guard: Guard, holder: Subject, candidate: Subject, seed: int) -> Take:
    """Return what times two subjects side by side on fresh buffers, under the guard."""
    rng = random.Random(seed)

    def take(ask: Ask) -> Series:
        time.sleep(ask.pause_s)
        sample_ms = Settings.of_device(one.chosen.device.kind).gating.sample_ms
        job = TimePairs(one.problem, holder, candidate, ask.pairs, rng.getrandbits(31), sample_ms, RUN_LIMIT_S)
        reply = one.executor.evaluate(job, SERIES_S)
        if not isinstance(reply, Timed):
            raise SystemExit(f"could not be timed: {reply}")
        return reply.series

    return guard.watched(take)


def median_gain(take: Take, series: int = CALIBRATION_SERIES) -> float:
    """Return the median ln(t_holder / t_candidate) over some series of four pairs."""
    return statistics.median(gain for index in range(series) for gain in ratios(take(Ask(4, "calibrate", index))))


def decisions(gating: Gating, take: Take, noise: float, count: int, label: str) -> dict[str, int]:
    """Gate `count` times and count what the gate decided."""
    found: collections.Counter[str] = collections.Counter()
    began = time.monotonic()
    for number in range(1, count + 1):
        found[answer(gate(gating, noise, None), take).decision] += 1
        print(f"\r{label}: {number} of {count}: {dict(found)}   ", end="", file=sys.stderr, flush=True)
    print(f"{(time.monotonic() - began) / max(count, 1):.2f} s each", file=sys.stderr)
    return dict(found)


def calibrated(one: Trial, guard: Guard, plain: Lowered, fast: Subject, wanted: Fast) -> tuple[Subject, int, float]:
    """Return the kernel made slower by about what is wanted, the loop's length and the difference as measured."""
    spin, low, high = wanted.first_spin, 0, 0
    for attempt in range(STEPS):
        slow, _ = one.build(slowed(plain, spin))
        share = math.expm1(-median_gain(pairs_of(one, guard, fast, slow, attempt + 1)))
        print(f"{spin} iterations: slower by {share:.2%}", file=sys.stderr)
        if abs(share - wanted.slower) < CLOSE * wanted.slower:
            break
        low, high = (spin, high) if share < wanted.slower else (low, spin)
        spin = (low + high) // 2 if high else 2 * spin
    return slow, spin, share


def measured(one: Trial, guard: Guard, args: argparse.Namespace) -> dict[str, object]:
    """Run the three comparisons and return their figures."""
    device, wanted = one.chosen.device, FAST[one.chosen.name]
    gating = Settings.of_device(device.kind).gating
    schedule = ir.default_schedule(one.problem, wanted.structure, device.target, device).with_knobs(wanted.knobs)
    plain = one.on_paper(schedule).full
    fast, _ = one.build(plain)
    slow, spin, share = calibrated(one, guard, plain, fast, wanted)
    noise = calibrate(pairs_of(one, guard, fast, fast, 3)).pair_noise
    equal, behind, ahead = (fast, fast), (fast, slow), (slow, fast)
    print(f"{schedule.text}; pair noise {noise:.2%}; slower by {share:.2%} with {spin} iterations")
    return {
        "pair_noise": noise,
        "slower_by": share,
        "itself": decisions(gating, pairs_of(one, guard, *equal, 4), noise, args.comparisons, "itself"),
        "slower": decisions(gating, pairs_of(one, guard, *behind, 5), noise, args.slower, "slower"),
        "faster": decisions(gating, pairs_of(one, guard, *ahead, 6), noise, args.faster, "faster"),
        "stale_codes": list(guard.codes),
    }


def main() -> int:
    """Print the figures; 1 where they are not what is wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=sorted(FAST), default="cpu")
    parser.add_argument("--comparisons", type=int, default=100)
    parser.add_argument("--slower", type=int, default=30)
    parser.add_argument("--faster", type=int, default=30)
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    try:
        chosen = choose(argparse.Namespace(backend=args.backend, device=None))
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    problem = kernels.load("matmul_bias_relu", target=chosen.device.target, shapes=[])
    settings = Settings.of_device(chosen.device.kind)
    guard = Guard(settings.running.guard_refusals, monitor_of(chosen.device))
    try:
        with trial(problem, chosen, "gate benchmark", settings.building.smoke_fraction) as one:
            figures = measured(one, guard, args)
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    figures = {"device": chosen.device.name, "cores": chosen.device.cores, **figures}
    print(json.dumps(figures, indent=1))
    if args.keep:
        record.keep(f"gate_{args.backend}", figures)
    counts = {name: figures[name] for name in ("itself", "slower", "faster")}
    accepted = {name: found.get("accept", 0) for name, found in counts.items() if isinstance(found, dict)}
    wanted = (
        accepted["itself"] <= max(1, args.comparisons // 100)
        and accepted["slower"] == 0
        and accepted["faster"] >= 0.9 * args.faster
    )
    return 0 if wanted else 1


if __name__ == "__main__":
    sys.exit(main())
