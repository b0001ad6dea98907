"""Step 10: the gate decides by interleaved series whether a candidate beats the incumbent."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Literal, NamedTuple

from cake_tui.config import Gating
from cake_tui.model.measure import GateResult, Series
from cake_tui.steps import student
from cake_tui.steps.measure import Ask, Asks, ask_coarse, candidate_us, holder_us, ratios

PAIRS = 4  # of a series
FIRST_LOOK = 4  # series
# One-sided levels of the looks at 4, 8, ... 256 series, together 1 %; looks beyond share what little is left.
LEVELS = (0.001, 0.001, 0.001, 0.0015, 0.0015, 0.002, 0.002)
LATE_LEVEL = 0.0002
BOUND_LEVEL = 0.05  # of the upper bound that rejects
TRIM = 0.125  # cut at either end, from TRIM_FROM values on
TRIM_FROM = 8
OBVIOUS = math.log(1.2)
OBVIOUS_NOISES = 10.0
HOPELESS_NOISES = 3.1 / math.sqrt(2.0)
CONFIRM_PAUSE_S = 0.05
NOISY_FACTOR = 2.0  # pairs spread so much wider than the session's noise: the machine was not itself

Look = Literal["accept", "reject", "go on"]


class Estimate(NamedTuple):
    """Mean (or trimmed mean) gain of some series with its standard error and degrees of freedom."""

    mean: float
    error: float
    freedom: int

    def low(self, level: float = BOUND_LEVEL) -> float:
        """Lower one-sided bound."""
        return self.mean - student.upper(level, self.freedom) * self.error

    def high(self, level: float = BOUND_LEVEL) -> float:
        """Upper one-sided bound."""
        return self.mean + student.upper(level, self.freedom) * self.error

    def exceeds_zero(self, level: float) -> bool:
        """Whether the one-sided t-test at `level` finds a gain at all."""
        return self.mean > student.upper(level, self.freedom) * self.error


def threshold(accept_pct: float) -> float:
    """Return the ln ratio of a candidate that takes `accept_pct` percent less time."""
    return -math.log1p(-accept_pct / 100.0)


def looks(gate_series: int) -> tuple[int, ...]:
    """Return after how many series the gate looks: 4, 8, 16, ... and at `gate_series` itself."""
    steps = [FIRST_LOOK]
    while steps[-1] < gate_series:
        steps.append(min(2 * steps[-1], gate_series))
    return tuple(steps)


def look0(coarse: Sequence[Series], pair_noise: float) -> Look:
    """Judge the coarse measurement: obvious in either direction, or worth more series.

    `pair_noise` is s, the robust standard deviation of ln ratios of self-pairs, as a fraction.
    """
    gains = [gain for series in coarse for gain in ratios(series)]
    if min(gains) > max(OBVIOUS_NOISES * pair_noise, OBVIOUS):
        return "accept"
    if max(gains) < -HOPELESS_NOISES * pair_noise:
        return "reject"
    return "go on"


def estimate(values: Sequence[float]) -> Estimate:
    """Return the mean of series values, two or more, trimmed by 12.5 % at either end from 8 values on.

    Fewer than 4 values are too few for a mean that one spike cannot carry away: their median stands for it.

    The error of a trimmed mean is that of the winsorised values divided by the share that is kept, with
    h - 1 degrees of freedom for h values kept (Tukey and McLaughlin 1963; Yuen 1974).
    """
    count = len(values)
    cut = int(TRIM * count) if count >= TRIM_FROM else 0
    ordered = sorted(values)
    kept = ordered[cut : count - cut]
    winsorised = [kept[0]] * cut + kept + [kept[-1]] * cut
    centre = math.fsum(winsorised) / count
    spread = math.sqrt(math.fsum((value - centre) ** 2 for value in winsorised) / (count - 1))
    middle = math.fsum(kept) / len(kept) if count >= FIRST_LOOK else statistics.median(kept)
    return Estimate(middle, spread * math.sqrt(count) / len(kept), len(kept) - 1)


def gate(settings: Gating, pair_noise: float, coarse: Sequence[Series] | None) -> Asks[GateResult]:
    """Ask for series until it is clear whether the candidate beats the holder; returns a `GateResult`.

    `coarse` is the candidate's coarse measurement against this same holder: look 0. None (the incumbent has
    changed since, or a play-off) takes a fresh one first. `pair_noise` as in `look0`.
    """
    if coarse is None:
        coarse = (yield from ask_coarse()).series
    needed = threshold(settings.accept_pct)
    first = look0(coarse, pair_noise)
    gains = [gain for series in coarse for gain in ratios(series)]
    if first == "reject":
        reason = f"slower in all of {len(gains)} pairs, by {-max(gains):.2%} or more"
        return _result("reject", estimate(gains), coarse, 0, len(coarse), reason)
    if first == "accept":
        return (yield from _confirm(settings, len(coarse), 1, 0, len(coarse)))
    taken: list[Series] = []
    values: list[float] = []
    steps = looks(settings.gate_series)
    for number, upto in enumerate(steps):
        while len(taken) < upto:
            series = yield Ask(PAIRS, "look", len(taken))
            taken.append(series)
            values.append(statistics.median(ratios(series)))
        now = estimate(values)
        level = LEVELS[number] if number < len(LEVELS) else LATE_LEVEL
        if now.mean >= needed and now.exceeds_zero(level):
            return (yield from _confirm(settings, upto, PAIRS, number + 1, upto))
        if now.high() < needed:
            reason = f"gain at most {now.high():.2%} after {upto} series, needed: above {settings.accept_pct:g} %"
            return _result("reject", now, taken, number + 1, upto, reason)
    return _open(now, taken, len(steps), pair_noise)


def _confirm(settings: Gating, count: int, pairs: int, number: int, spent: int) -> Asks[GateResult]:
    """Take as many series again, fresh ones, that must exceed the threshold by themselves.

    They exceed it when their lower 95 % bound does: with the bare mean, one in three candidates that are
    0.49 % better would pass for 0.5 %. Where the fresh ones leave it open, as many again are taken and all
    fresh ones decide, up to twice `gate_series`.
    """
    needed = threshold(settings.accept_pct)
    fresh: list[Series] = []
    target, most = count, max(2 * count, 2 * settings.gate_series)
    while True:
        while len(fresh) < target:
            rest = CONFIRM_PAUSE_S if not fresh else 0.0
            fresh.append((yield Ask(pairs, "confirm", spent + len(fresh), rest)))
        now = estimate([statistics.median(ratios(series)) for series in fresh])
        total = spent + len(fresh)
        if now.low() > needed:
            reason = f"confirmed by {len(fresh)} fresh series"
            return _result("accept", now, fresh, number, total, reason, confirmed=True)
        again = len(fresh) > count
        if now.mean <= needed / 2.0 or (again and now.high() <= needed):
            reason = f"{len(fresh)} fresh series gave {now.mean:+.2%}, needed: above {needed:.2%}"
            return _result("reject", now, fresh, number, total, reason)
        if target >= most:
            reason = f"{len(fresh)} fresh series gave {now.mean:+.2%}, not surely above {needed:.2%}"
            return _result("undecided", now, fresh, number, total, reason)
        target = min(2 * target, most)


def _open(now: Estimate, taken: Sequence[Series], number: int, pair_noise: float) -> GateResult:
    """The last look left it open: undecided, or noisy where the pairs spread far wider than the session's do."""
    spread = statistics.median(_spread(series) for series in taken)
    if spread > NOISY_FACTOR * pair_noise:
        reason = f"pairs spread by {spread:.2%}, the session's pair noise is {pair_noise:.2%}"
        return _result("noisy", now, taken, number, len(taken), reason)
    reason = f"between {now.low():+.2%} and {now.high():+.2%} after {len(taken)} series (gate_series)"
    return _result("undecided", now, taken, number, len(taken), reason)


def _spread(series: Series) -> float:
    """Standard deviation of a series' ln ratios."""
    values = ratios(series)
    return statistics.stdev(values) if len(values) > 1 else 0.0


def _result(
    decision: Literal["accept", "reject", "undecided", "noisy"],
    now: Estimate,
    deciding: Sequence[Series],
    number: int,
    spent: int,
    reason: str,
    *,
    confirmed: bool = False,
) -> GateResult:
    return GateResult(
        decision=decision, gain=now.mean, gain_low=now.low(), looks=number, series=spent, confirmed=confirmed,
        reason=reason, candidate_us=candidate_us(deciding), holder_us=holder_us(deciding),
    )  # fmt: skip
