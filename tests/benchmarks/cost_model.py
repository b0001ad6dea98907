"""How well the cost model orders candidates: each predicted before it is measured, then learnt from.

    python -m tests.benchmarks.cost_model [SESSION …]

reads recorded sessions (``--agent random``, screening off), without any the samples kept in ``tests/data/samples/``,
leaves candidate 0 out and prints Spearman's rank correlation after 60 measurements, the regret of screening twice the
round's candidates down to the round, and the share of ties that were kept; a constant and a FLOPs-only model stand
beside it. Wanted: at least 0.7, at most 2 %.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from cake_tui import ir
from cake_tui.errors import Ended
from cake_tui.ir.cost import Correction, CostRow, Estimate, estimate, screen
from tests.agents import samples as recorded

CALIBRATION = 60
ROUND = 4

Sample = Sequence[tuple[Estimate, float]]


@dataclass(frozen=True)
class Quality:
    """One model on one sample, after calibration. Shares are 0 to 1."""

    name: str
    judged: int
    spearman: float
    regret: float  # mean over rounds: best of the kept over best of all, minus 1
    best_regret: float  # the same for the best of the whole sample
    kept: float  # share of candidates that screening keeps; 0.5 without ties
    error: float  # root mean square of ln(measured / predicted)


def evaluate_model(sample: Sample, calibration: int = CALIBRATION, size: int = ROUND) -> dict[str, Quality]:
    """Judge the model, a constant and a FLOPs-only model on measurements in their order.

    `sample` pairs estimates as `estimate` gives them (uncorrected) with measured times in microseconds. Raises
    ValueError for a sample that leaves no whole round behind the calibration.
    """
    if len(sample) < calibration + 2 * size:
        raise ValueError(f"{len(sample)} measurements; needed: {calibration + 2 * size} or more")
    correction = Correction()
    predicted: list[Estimate] = []
    for guess, measured_us in sample:
        predicted.append(correction.apply(guess))
        correction.learn(CostRow.of(guess, measured_us))
    times = [measured_us for _, measured_us in sample]
    models = {
        "model": predicted,
        "constant": [msgspec.structs.replace(one, predicted_us=1.0, error=0.0) for one in predicted],
        "flops": [msgspec.structs.replace(one, predicted_us=max(1.0, one.flops), error=0.0) for one in predicted],
    }
    return {name: _judge(name, ones, times, calibration, size) for name, ones in models.items()}


def _judge(name: str, guesses: list[Estimate], times: list[float], calibration: int, size: int) -> Quality:
    guesses, times = guesses[calibration:], times[calibration:]
    regrets: list[float] = []
    kept_times: list[float] = []
    seen = 0
    for start in range(0, len(times) - 2 * size + 1, 2 * size):
        group = guesses[start : start + 2 * size]
        if name == "model":
            kept = screen(group, size, 0.0, random.Random(0))[0]
        else:  # a baseline knows no ties: it takes the first of equals
            kept = sorted(range(len(group)), key=lambda at: (group[at].predicted_us, at))[:size]
        best = min(times[start : start + 2 * size])
        mine = [times[start + at] for at in kept]
        regrets.append(min(mine) / best - 1)
        kept_times += mine
        seen += 2 * size
    errors = [math.log(time / guess.predicted_us) for time, guess in zip(times, guesses)]
    return Quality(
        name=name,
        judged=len(times),
        spearman=spearman([guess.predicted_us for guess in guesses], times),
        regret=sum(regrets) / len(regrets),
        best_regret=min(kept_times) / min(times[:seen]) - 1,
        kept=len(kept_times) / seen,
        error=math.sqrt(sum(error * error for error in errors) / len(errors)),
    )


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Rank correlation; equal values share their mean rank, and a constant correlates with nothing."""
    ranks = _ranks(one), _ranks(other)
    mean = (len(one) - 1) / 2
    spread = [sum((rank - mean) ** 2 for rank in side) for side in ranks]
    if not spread[0] or not spread[1]:
        return 0.0
    return sum((a - mean) * (b - mean) for a, b in zip(*ranks)) / math.sqrt(spread[0] * spread[1])


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=lambda at: values[at])
    ranks = [0.0] * len(values)
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or values[order[end]] != values[order[start]]:
            for at in order[start:end]:
                ranks[at] = (start + end - 1) / 2
            start = end
    return ranks


def estimates_of(sample: recorded.Sample) -> list[tuple[Estimate, float]]:
    """Return a sample's candidates, in order and without candidate 0, with their uncorrected estimates."""
    problem, device = sample.problem, sample.device
    several = len(problem.shapes) > 1
    found = []
    for entry in sample.entries[1:]:
        try:
            program = ir.build(problem, entry.schedule, device.target, device, runtime_sizes=several)
        except Ended:  # a setting that builders do not know any more
            continue
        guess = estimate(program, device, problem.shapes)
        if guess is not None:
            found.append((guess, entry.time_us))
    return found


def as_predicted(sample: recorded.Sample, calibration: int = CALIBRATION) -> float:
    """Return Spearman's rank correlation of what the run itself predicted before it measured."""
    told = [(one.predicted_us, one.time_us) for one in sample.entries[1:] if one.predicted_us is not None]
    return spearman(*([pair[side] for pair in told[calibration:]] for side in (0, 1)))


def report(qualities: dict[str, Quality]) -> str:
    """Lines for people."""
    rows = [f"{'model':10s} {'judged':>6s} {'Spearman':>8s} {'regret':>7s} {'of best':>7s} {'kept':>6s} {'error':>6s}"]
    for one in qualities.values():
        rows.append(
            f"{one.name:10s} {one.judged:6d} {one.spearman:8.3f} {one.regret:7.2%} {one.best_regret:7.2%} "
            f"{one.kept:6.0%} {one.error:6.2f}"
        )
    return "\n".join(rows)


def main(folders: Sequence[str]) -> None:
    """Print the figures of recorded sessions, or of the samples kept."""
    samples = {folder: recorded.Sample.of(recorded.read_history(Path(folder) / "journal.jsonl")) for folder in folders}
    for name, sample in (samples or {name: recorded.Sample.stored(name) for name in recorded.STORED}).items():
        print(f"{name}: as the run predicted, Spearman {as_predicted(sample):.3f}")
        try:
            print(report(evaluate_model(estimates_of(sample))))
        except ValueError as error:
            print(error)


if __name__ == "__main__":
    main(sys.argv[1:])
