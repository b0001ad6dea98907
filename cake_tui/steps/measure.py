"""Step 9: measure a candidate next to the incumbent, and how far two equal runs differ.

Series are asked for, so that an evaluator, a recording or a simulated machine can answer.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Literal, TypeVar

import msgspec

from cake_tui.model.measure import Pair, Series

COARSE_SERIES = 3  # "median of three"
CALIBRATION_SERIES, CALIBRATION_PAIRS = 4, 4  # sixteen self-pairs
CALIBRATION_S = 2.0
LEAST_NOISE = 1e-4  # nobody's clock is better than this
NORMAL_MAD = 1.4826  # standard deviation of a normal distribution over its median absolute deviation

Result = TypeVar("Result")


class Ask(msgspec.Struct, frozen=True):
    """One series wanted: `pairs` ABBA pairs on buffers allocated afresh.

    `index` counts the series of one question from 0; `pause_s` is a rest before it (the confirmation is
    separated from the look that called for it).
    """

    pairs: int
    purpose: Literal["coarse", "baseline", "look", "confirm", "calibrate"] = "look"
    index: int = 0
    pause_s: float = 0.0


Take = Callable[[Ask], Series]
"""Answers one `Ask`; what it raises (a candidate's ending, an interruption) travels through."""

Asks = Generator[Ask, Series, Result]
"""A question that needs series: yields each `Ask`, is sent the `Series`, returns its answer."""


class Measurement(msgspec.Struct, frozen=True):
    """A coarse measurement: `avg_us` is the median of the three runs `runs_us`; `gain` is the median
    ln(t_holder / t_candidate), 0 for candidate 0."""

    avg_us: float
    runs_us: tuple[float, ...]
    gain: float
    series: tuple[Series, ...]


class Calibration(msgspec.Struct, frozen=True):
    """Pair noise s of some self-pairs, as a fraction, and the median time of the kernel, microseconds."""

    pair_noise: float
    pairs: int
    avg_us: float


def answer(asks: Asks[Result], take: Take) -> Result:
    """Let `take` answer every `Ask` in turn and return what the question makes of them."""
    try:
        ask = next(asks)
        while True:
            ask = asks.send(take(ask))
    except StopIteration as done:
        result: Result = done.value
        return result
    finally:
        asks.close()


def coarse(take: Take, *, baseline: bool = False) -> Measurement:
    """Measure by three series of one pair with the incumbent; candidate 0, which has none, next to itself."""
    return answer(ask_baseline() if baseline else ask_coarse(), take)


def ask_coarse() -> Asks[Measurement]:
    """Three series of one interleaved pair each; every one on fresh buffers."""
    series = []
    for index in range(COARSE_SERIES):
        series.append((yield Ask(1, "coarse", index)))
    runs = tuple(pair.candidate_us for one in series for pair in one.pairs)
    gain = statistics.median(ratio for one in series for ratio in ratios(one))
    return Measurement(statistics.median(runs), runs, gain, tuple(series))


def ask_baseline() -> Asks[Measurement]:
    """Two self-pairs are four runs; the first, which met cold caches, is left out."""
    one = yield Ask(2, "baseline")
    ratios(one)
    runs = tuple(run for pair in one.pairs for run in in_order(pair))[1:]
    return Measurement(statistics.median(runs), runs, 0.0, (one,))


def ask_noise(now: Callable[[], float] = time.monotonic) -> Asks[Calibration]:
    """Sixteen self-pairs on four allocations, in at most about 2 s; at least four pairs, however long they take."""
    began = now()
    taken: list[Series] = []
    while len(taken) < CALIBRATION_SERIES:
        spent = now() - began
        if taken and spent + spent / len(taken) > CALIBRATION_S:
            break
        taken.append((yield Ask(CALIBRATION_PAIRS, "calibrate", len(taken))))
    gains = [gain for series in taken for gain in ratios(series)]
    return Calibration(max(robust_sd(gains), LEAST_NOISE), len(gains), holder_us(taken))


def robust_sd(values: Sequence[float]) -> float:
    """Return the standard deviation estimated from the median absolute deviation, so that spikes do not count."""
    middle = statistics.median(values)
    return NORMAL_MAD * statistics.median(abs(value - middle) for value in values)


def in_order(pair: Pair) -> tuple[float, float]:
    """Return the pair's two times as they were run, microseconds."""
    return (pair.holder_us, pair.candidate_us) if pair.holder_first else (pair.candidate_us, pair.holder_us)


def ratios(series: Series) -> list[float]:
    """Return ln(t_holder / t_candidate) of each pair; raises ValueError for no pair or no usable time."""
    if not series.pairs:
        raise ValueError("a series without pairs")
    out = []
    for pair in series.pairs:
        if not (0.0 < pair.holder_us < math.inf and 0.0 < pair.candidate_us < math.inf):
            raise ValueError(f"a pair without usable times: {pair.holder_us} us, {pair.candidate_us} us")
        out.append(math.log(pair.holder_us / pair.candidate_us))
    return out


def holder_us(series: Iterable[Series]) -> float:
    """Return the median time of the holder over all pairs: what refreshes the incumbent's `avg_us`."""
    return statistics.median(pair.holder_us for one in series for pair in one.pairs)


def candidate_us(series: Sequence[Series]) -> float:
    """Return the median time of the candidate over all pairs, microseconds."""
    return statistics.median(pair.candidate_us for one in series for pair in one.pairs)
