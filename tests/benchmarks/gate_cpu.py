"""The gate on this CPU: a kernel against itself, against one made 2 % slower, and that one's holder made faster.

    python -m tests.benchmarks.gate_cpu [--comparisons 100] [--slower 30] [--faster 30] [--keep]

Wanted: at most 1 of 100 self-comparisons accepted, the slower kernel never, the faster one 9 times of 10. With
--keep the figures are appended to a file with machine, commit and date, and printed beside the last ones there.
The slower kernel is the same one with an empty loop behind each task, its length calibrated by measuring.
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

import msgspec

from cake_tui import ir, kernels, registry
from cake_tui.cli._device import choose
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

SLOWER = 0.02
FIRST_SPIN = 500  # iterations behind each task, to begin with
CALIBRATION_SERIES = 24
STEPS = 10  # of the bisection
CLOSE = 0.003
KNOBS = {"vector": 16, "thread_m": 8, "thread_n": 2}


def slowed(lowered: Lowered, spin: int) -> Lowered:
    """Return the same kernel with an empty loop of `spin` iterations behind each task of its last launch."""
    body, brace, rest = lowered.source.rpartition("}")
    loop = f'  for (int spin = 0; spin < {spin}; spin++) __asm__ volatile("" : : "r"(spin));\n'
    return msgspec.structs.replace(lowered, source=body + loop + brace + rest)


def pairs_of(one: Trial, guard: Guard, holder: Subject, candidate: Subject, seed: int) -> Take:
    """Return what times two subjects side by side on fresh buffers, under the guard."""
    rng = random.Random(seed)

    def take(ask: Ask) -> Series:
        time.sleep(ask.pause_s)
        sample_ms = Gating().sample_ms
        job = TimePairs(one.problem, holder, candidate, ask.pairs, rng.getrandbits(31), sample_ms, RUN_LIMIT_S)
        reply = one.executor.evaluate(job, SERIES_S)
        if not isinstance(reply, Timed):
            raise SystemExit(f"could not be timed: {reply}")
        return reply.series

    return guard.watched(take)


def median_gain(take: Take, series: int = CALIBRATION_SERIES) -> float:
    """Return the median ln(t_holder / t_candidate) over some series of four pairs."""
    return statistics.median(gain for index in range(series) for gain in ratios(take(Ask(4, "calibrate", index))))


def decisions(take: Take, noise: float, count: int, label: str) -> dict[str, int]:
    """Gate `count` times and count what the gate decided."""
    found: collections.Counter[str] = collections.Counter()
    began = time.monotonic()
    for number in range(1, count + 1):
        found[answer(gate(Gating(), noise, None), take).decision] += 1
        print(f"\r{label}: {number} of {count}: {dict(found)}   ", end="", file=sys.stderr, flush=True)
    print(f"{(time.monotonic() - began) / max(count, 1):.2f} s each", file=sys.stderr)
    return dict(found)


def calibrated(one: Trial, guard: Guard, plain: Lowered, fast: Subject) -> tuple[Subject, int, float]:
    """Return the kernel made about 2 % slower, the loop's length and by how much it is slower as measured."""
    spin, low, high = FIRST_SPIN, 0, 0
    for attempt in range(STEPS):
        slow, _ = one.build(slowed(plain, spin))
        share = math.expm1(-median_gain(pairs_of(one, guard, fast, slow, attempt + 1)))
        print(f"{spin} iterations a task: slower by {share:.2%}", file=sys.stderr)
        if abs(share - SLOWER) < CLOSE:
            break
        low, high = (spin, high) if share < SLOWER else (low, spin)
        spin = (low + high) // 2 if high else 2 * spin
    return slow, spin, share


def measured(one: Trial, guard: Guard, args: argparse.Namespace) -> dict[str, object]:
    """Run the three comparisons and return their figures."""
    device = one.chosen.device
    schedule = ir.default_schedule(one.problem, "packed", device.target, device).with_knobs(KNOBS)
    plain = one.on_paper(schedule).full
    fast, _ = one.build(plain)
    slow, spin, share = calibrated(one, guard, plain, fast)
    noise = calibrate(pairs_of(one, guard, fast, fast, 3)).pair_noise
    print(f"{schedule.text}; pair noise {noise:.2%}; slower by {share:.2%} with {spin} iterations a task")
    return {
        "pair_noise": noise,
        "slower_by": share,
        "itself": decisions(pairs_of(one, guard, fast, fast, 4), noise, args.comparisons, "itself"),
        "slower": decisions(pairs_of(one, guard, fast, slow, 5), noise, args.slower, "2 % slower"),
        "faster": decisions(pairs_of(one, guard, slow, fast, 6), noise, args.faster, "2 % faster"),
        "stale_codes": list(guard.codes),
    }


def main() -> int:
    """Print the figures; 1 where they are not what is wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=100)
    parser.add_argument("--slower", type=int, default=30)
    parser.add_argument("--faster", type=int, default=30)
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    chosen = choose(argparse.Namespace(backend="cpu", device=None))
    problem = kernels.load("matmul_bias_relu", target="c", shapes=[])
    settings = Settings()
    guard = Guard(settings.running.guard_refusals, registry.load("monitors", "host")(chosen.device))
    try:
        with trial(problem, chosen, "gate benchmark", settings.building.smoke_fraction) as one:
            figures = measured(one, guard, args)
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    figures = {"cpu": chosen.device.name, "cores": chosen.device.cores, **figures}
    print(json.dumps(figures, indent=1))
    if args.keep:
        record.keep("gate_cpu", figures)
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
