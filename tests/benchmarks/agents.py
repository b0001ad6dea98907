"""Prints how good and how quick the agents are: candidates to 90 % of the optimum, milliseconds a round.

    python -m tests.benchmarks.agents [--seeds 20] [--first-seed 0] [--on NAME ...] [--keep]

The bandit's constants were chosen on seeds 0 to 11: `--first-seed 100` asks seeds that it never saw. Medians over
seeds on the three simulated surfaces, for each agent of the package that needs nothing but a menu, and for the bandit
without its macro level; the same on each recorded sample, replayed in several ways, beside its rows in an order
drawn anew and the recorded run itself; then the time of one `propose` after 600 and 20,000 rows.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time
from collections.abc import Callable

from cake_tui import registry
from cake_tui.agents import Agent
from cake_tui.backends.simulated.surfaces import SURFACES, Surface
from tests.agents.replay import NAMES, Replay, recorded
from tests.agents.surface_session import SurfaceSession, median_candidates, optimum_us, packaged_menu
from tests.benchmarks import record

ARMS: dict[str, tuple[str, str]] = {
    "bandit": ("bandit", ""),
    "bandit, numbers only": ("bandit", "micro"),
    "random": ("random", ""),
    "grid": ("grid", ""),
}
MOST = 1200  # effective candidates a run
SHARE = 0.9
SHARES = (0.9, 0.95)
WAYS: tuple[tuple[str, bool, dict[str, bool]], ...] = (  # how a sample answers, the tests' way first
    ("first settings drawn", False, {"screen": False, "drawn_starts": True}),
    ("replayed", False, {"screen": False}),
    ("replayed, near by knobs alone", True, {"screen": False}),
)


def make(arm: str) -> Agent:
    name, argument = ARMS[arm]
    agent: Agent = registry.load("agents", name)({"argument": argument})
    return agent


def reach(name: str, surface: Surface, seeds: range) -> dict[str, float | None]:
    """Print what each arm needs and return its medians; None where half of the seeds never arrive."""
    optimum = optimum_us(name)
    print(f"\n{name}: optimum {optimum:.0f} us; effective candidates to {SHARE:.0%} of its speed, {len(seeds)} seeds")
    medians: dict[str, float | None] = {}
    for arm in ARMS:
        counts, best = [], []
        for seed in seeds[:1] if arm == "grid" else seeds:
            session = SurfaceSession(surface, make(arm), seed, candidates=600)
            counts.append(session.run(600 if arm.startswith("bandit") else MOST, optimum / SHARE))
            best.append(optimum / session.best_us())
        medians[f"{name}: {arm}"] = _finite(median_candidates(counts))
        arrived = [count for count in counts if count is not None]
        print(
            f"  {arm:22s} median {_told(median_candidates(counts)):>6s}"
            f"   arrived {len(arrived):2d} of {len(counts):2d}"
            f"   least {min(arrived, default=0):4d}   most {max(arrived, default=0):4d}"
            f"   median of the last best {statistics.median(best):.0%} of the optimum's speed"
        )
    return medians


def replays(name: str, seeds: range) -> dict[str, float | None]:
    """Print medians on a recorded sample, to each of `SHARES`, and return them."""
    table = recorded(name)
    targets = [table.optimum_us / share for share in SHARES]
    print(f"\n{name}: {table.count} times, the best {table.optimum_us:.0f} us; median candidates to {SHARES} of it")
    rows = [median_candidates([table.drawn(seed, target) for seed in range(200)]) for target in targets]
    lines = {"the recorded run": [float(table.as_recorded(target)) for target in targets], "rows drawn anew": rows}
    for way, by_knobs, options in WAYS:
        for arm in ("bandit", "bandit, numbers only", "random"):
            runs = [
                Replay(recorded(name, by_knobs=by_knobs), make(arm), seed, **options).reach(targets)
                for seed in (seeds[:3] if arm == "bandit, numbers only" else seeds)
            ]
            lines[f"{way}: {arm}"] = [median_candidates(counts) for counts in zip(*runs)]
    for line, medians in lines.items():
        print(f"  {line:46s} {'   '.join(f'{_told(median):>6s}' for median in medians)}")
    return {
        f"{name}, {share:.0%}: {line}": _finite(median)
        for line, medians in lines.items()
        for share, median in zip(SHARES, medians)
    }


def _told(median: float) -> str:
    return "never" if math.isinf(median) else f"{median:g}"


def _finite(median: float) -> float | None:
    return None if math.isinf(median) else median


def quickness(rows: int) -> None:
    """Time `propose` on a history of so many rows: processor time, the first call (which reads it all) apart."""
    session = SurfaceSession(SURFACES["ridge"], make("random"), 1, candidates=10**6, round=64, lawful=lambda _: None)
    while len(session.history.rows) < rows:
        list(session.round())
    print(f"\none propose(n = 8) after {len(session.history.rows)} rows, milliseconds of processor time")
    for arm in ARMS:
        agent = make(arm)
        first = _milliseconds(lambda agent=agent: agent.propose(session.history, session.menu, 8, random.Random(0)))  # type: ignore[misc]
        later = []
        for seed in range(1, 21):
            session.history.round += 1
            later.append(
                _milliseconds(
                    lambda agent=agent, s=seed: agent.propose(session.history, session.menu, 8, random.Random(s))
                )  # type: ignore[misc]
            )
        print(f"  {arm:22s} median {statistics.median(later):6.2f}   most {max(later):6.2f}   first {first:6.1f}")


def _milliseconds(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return 1e3 * (time.process_time() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20, help="0: only time the agents")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--on", nargs="*", choices=[*SURFACES, *NAMES], default=[*SURFACES, *NAMES])
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--rows", type=int, nargs="*", default=[600, 20_000], help="history sizes to time, or none")
    options = parser.parse_args()
    packaged_menu()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    figures: dict[str, float | str | None] = {"seeds": f"{seeds.start} to {seeds.stop - 1}"}
    for name in options.on if options.seeds else ():
        figures |= reach(name, SURFACES[name], seeds) if name in SURFACES else replays(name, seeds)
    if options.keep:
        record.keep("agents", figures)
    for rows in options.rows:
        quickness(rows)


if __name__ == "__main__":
    main()
