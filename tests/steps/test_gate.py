"""The gate on series that are fed to it: looks, confirmation, thresholds, and the lucky candidates of case A09."""

from __future__ import annotations

import collections
import math
import random
import statistics
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from cake_tui.config import Gating
from cake_tui.model.measure import GateResult, Pair, Series
from cake_tui.steps.gate import LEVELS, estimate, gate, look0, looks, threshold
from cake_tui.steps.measure import Ask, answer, coarse
from tests.steps.noisy_machine import FIVE_PERCENT, PLACEMENT, QUIET, NoisyMachine

HOLDER_US = 1000.0


def series_of(*gains: float) -> Series:
    """One series with these ln(t_holder / t_candidate), ABBA."""
    pairs = [Pair(HOLDER_US, HOLDER_US * math.exp(-gain), index % 2 == 0) for index, gain in enumerate(gains)]
    return Series(tuple(pairs))


def fed(gains: Iterator[float] | Callable[[Ask], float], record: list[Ask] | None = None) -> Callable[[Ask], Series]:
    """Answer each ask with a series all of whose pairs have the next gain."""

    def take(ask: Ask) -> Series:
        if record is not None:
            record.append(ask)
        gain = gains(ask) if callable(gains) else next(gains)
        return series_of(*[gain] * ask.pairs)

    return take


def decide(gain: float | Callable[[Ask], float], noise: float = 0.005, series: int = 64) -> GateResult:
    take = fed(gain if callable(gain) else lambda ask: gain)
    return answer(gate(Gating(gate_series=series), noise, None), take)


# -- look 0 -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gains", "noise", "expected"),
    [
        ((0.3, 0.25, 0.4), 0.01, "accept"),
        ((0.3, 0.17, 0.4), 0.01, "go on"),  # one below ln 1.2
        ((0.3, 0.25, 0.4), 0.03, "go on"),  # 10 s = 30 %
        ((0.35, 0.31, 0.4), 0.03, "accept"),
        ((-0.05, -0.04, -0.06), 0.01, "reject"),  # 3.1 s / sqrt 2 = 2.2 %
        ((-0.05, -0.02, -0.06), 0.01, "go on"),
        ((0.0, 0.0, 0.0), 0.0, "go on"),
        ((-1e-9, -1e-9, -1e-9), 0.0, "reject"),
    ],
)
def test_look_0_takes_only_the_obvious(gains: tuple[float, ...], noise: float, expected: str) -> None:
    assert look0([series_of(gain) for gain in gains], noise) == expected


def test_obvious_candidate_is_still_confirmed_on_as_many_fresh_series() -> None:
    record: list[Ask] = []
    measured = [series_of(1.0) for _ in range(3)]
    result = answer(gate(Gating(), 0.01, measured), fed(lambda ask: 0.9, record))
    assert result.decision == "accept"
    assert result.confirmed
    assert [(ask.purpose, ask.pairs) for ask in record] == [("confirm", 1)] * 3
    # the confirmed figure is stored, not the lucky first one
    assert result.gain == pytest.approx(0.9)
    assert result.candidate_us == pytest.approx(HOLDER_US * math.exp(-0.9))


def test_obvious_candidate_that_is_not_confirmed_is_rejected() -> None:
    result = answer(gate(Gating(), 0.01, [series_of(1.0)] * 3), fed(lambda ask: 0.0))
    assert result.decision == "reject"
    assert not result.confirmed


def test_a_given_coarse_measurement_is_not_taken_again_and_a_missing_one_is() -> None:
    for given, purposes in (([series_of(0.0)] * 3, {"look"}), (None, {"coarse", "look"})):
        record: list[Ask] = []
        answer(gate(Gating(), 0.01, given), fed(lambda ask: 0.0, record))
        assert {ask.purpose for ask in record} == purposes


# -- looks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("most", "expected"),
    [(4, (4,)), (64, (4, 8, 16, 32, 64)), (100, (4, 8, 16, 32, 64, 100)), (256, (4, 8, 16, 32, 64, 128, 256))],
)
def test_looks_double_up_to_the_setting(most: int, expected: tuple[int, ...]) -> None:
    assert looks(most) == expected


def test_levels_of_all_looks_are_one_percent_together() -> None:
    assert sum(LEVELS) == pytest.approx(0.01)
    assert len(LEVELS) == len(looks(256))


def test_clear_gain_needs_four_series_and_four_to_confirm() -> None:
    record: list[Ask] = []
    result = answer(gate(Gating(), 0.01, [series_of(0.02)] * 3), fed(lambda ask: 0.02, record))
    assert (result.decision, result.looks, result.series) == ("accept", 1, 8)
    assert [ask.purpose for ask in record] == ["look"] * 4 + ["confirm"] * 4
    assert all(ask.pairs == 4 for ask in record)
    assert record[4].pause_s > 0.0
    assert [ask.index for ask in record] == list(range(8))


@pytest.mark.parametrize("gain", [0.0, -0.01, 0.003, -math.log(0.9951), -math.log(0.995)])
def test_gain_of_half_a_percent_or_less_is_no_gain(gain: float) -> None:
    assert decide(gain).decision == "reject"


@pytest.mark.parametrize("gain", [-math.log(0.9949), 0.006, 0.02, 0.5])
def test_gain_above_half_a_percent_is_accepted(gain: float) -> None:
    result = decide(gain)
    assert result.decision == "accept"
    assert result.gain == pytest.approx(gain)
    assert result.gain_low == pytest.approx(gain)


def test_threshold_follows_its_setting() -> None:
    take = fed(lambda ask: 0.02)
    assert answer(gate(Gating(accept_pct=3.0), 0.01, None), take).decision == "reject"
    assert threshold(0.5) == pytest.approx(-math.log(0.995))


def test_confirmation_between_half_the_threshold_and_all_of_it_takes_as_many_again() -> None:
    record: list[Ask] = []
    values = iter([0.0, 0.0, 0.0] + [0.02] * 4 + [0.004] * 4 + [0.002] * 100)
    result = answer(gate(Gating(), 0.01, None), fed(values, record))
    assert result.decision == "reject"
    assert sum(ask.purpose == "confirm" for ask in record) == 8


def test_confirmation_below_half_the_threshold_ends_at_once() -> None:
    record: list[Ask] = []
    values = iter([0.0, 0.0, 0.0] + [0.02] * 4 + [0.002] * 4)
    assert answer(gate(Gating(), 0.01, None), fed(values, record)).decision == "reject"
    assert sum(ask.purpose == "confirm" for ask in record) == 4


def test_what_stays_open_is_not_accepted_and_said_so() -> None:
    # Just above the threshold in the mean, but spread so that no look is sure of any gain.
    rng = random.Random(3)
    result = decide(lambda ask: 0.006 + rng.choice((-0.03, 0.03)), noise=0.03, series=16)
    assert result.decision == "undecided"
    assert "gate_series" in result.reason
    assert result.series == 16


def test_spread_far_above_the_sessions_noise_is_called_noisy() -> None:
    rng = random.Random(5)

    def take(ask: Ask) -> Series:
        return series_of(*[0.006 + rng.gauss(0.0, 0.2) for _ in range(ask.pairs)])

    result = answer(gate(Gating(gate_series=16), 0.005, [series_of(0.0)] * 3), take)
    assert result.decision == "noisy"
    assert "pair noise" in result.reason


def test_order_bias_and_linear_drift_cancel() -> None:
    # The second run of each pair is 1 % slower and time itself climbs by 2 % over a series.
    def take(ask: Ask) -> Series:
        times = [HOLDER_US * (1.0 + 0.0025 * place) * (1.01 if place % 2 else 1.0) for place in range(2 * ask.pairs)]
        pairs = []
        for index in range(ask.pairs):
            first, second = times[2 * index], times[2 * index + 1]
            holder, candidate = (first, second) if index % 2 == 0 else (second, first)
            pairs.append(Pair(holder, candidate, index % 2 == 0))
        return Series(tuple(pairs))

    assert answer(gate(Gating(), 0.005, [series_of(0.0)] * 3), take).decision == "reject"


# -- statistics ---------------------------------------------------------------------------------------------


def test_estimate_is_the_mean_below_eight_values() -> None:
    values = [0.01, 0.02, 0.04, 0.09]
    now = estimate(values)
    assert now.mean == pytest.approx(np.mean(values))
    assert now.error == pytest.approx(np.std(values, ddof=1) / 2.0)
    assert now.freedom == 3


def test_estimate_trims_an_eighth_at_either_end_from_eight_values_on() -> None:
    values = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1000.0]
    now = estimate(values)
    assert now.mean == pytest.approx(3.5)  # of 1..6
    winsorised = np.array([1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 6.0])
    assert now.error == pytest.approx(winsorised.std(ddof=1) / (0.75 * math.sqrt(8)))
    assert now.freedom == 5


def test_estimate_of_three_is_their_median() -> None:
    assert estimate([0.3, 9.0, 0.2]).mean == 0.3


@pytest.mark.parametrize(
    "pair", [Pair(0.0, 1.0, True), Pair(1.0, math.nan, True), Pair(1.0, math.inf, True), Pair(1.0, -2.0, True)]
)
def test_times_that_are_none_are_a_bug_not_a_gain(pair: Pair) -> None:
    with pytest.raises(ValueError, match="usable times"):
        answer(gate(Gating(), 0.01, None), lambda ask: Series((pair,) * ask.pairs))


def test_what_take_raises_travels_through_and_closes_the_gate() -> None:
    def take(ask: Ask) -> Series:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answer(gate(Gating(), 0.01, None), take)


# -- power --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weather", "gain", "least"), [(QUIET, 0.01, 30), (PLACEMENT, 0.01, 30), (FIVE_PERCENT, 0.02, 29)]
)
def test_real_gains_are_found_with_the_series_of_a_cpu(weather: object, gain: float, least: int) -> None:
    machine = NoisyMachine(weather, seed=7)
    noise = machine.pair_noise()
    found = []
    for _ in range(30):
        machine.wait()
        machine.gain = gain
        found.append(answer(gate(Gating(gate_series=64), noise, None), machine.take))
    accepted = [result.gain for result in found if result.decision == "accept"]
    assert len(accepted) >= least
    assert statistics.fmean(accepted) == pytest.approx(gain, rel=0.15)


# -- case A09: a lucky time does not become the best --------------------------------------------------------


class LuckyTimer:
    """True time 1.000 ms for everybody, noise +-1 %; the first runs of a candidate may be given."""

    def __init__(self, seed: int, first: tuple[float, ...] = (), constant: float | None = None) -> None:
        self._random = random.Random(seed)
        self._first = list(first)
        self._constant = constant
        self.taken: dict[str, list[Series]] = collections.defaultdict(list)

    def _candidate(self) -> float:
        if self._constant is not None:
            return self._constant
        return self._first.pop(0) if self._first else self._noisy()

    def _noisy(self) -> float:
        return self._random.uniform(0.99, 1.01)

    def take(self, ask: Ask) -> Series:
        pairs = tuple(
            Pair(1000.0 * self._noisy(), 1000.0 * self._candidate(), index % 2 == 0) for index in range(ask.pairs)
        )
        self.taken[ask.purpose].append(Series(pairs))
        return Series(pairs)


PAIR_NOISE = 0.01 * math.sqrt(2.0 / 3.0)  # of the difference of two values uniform within +-1 %


def attempt(timer: LuckyTimer) -> GateResult:
    measured = coarse(timer.take)
    return answer(gate(Gating(), PAIR_NOISE, measured.series), timer.take)


def test_five_hundred_equal_candidates_with_three_lucky_ones() -> None:
    lucky = {
        17: {"first": (0.900,)},
        18: {"first": (0.990, 0.991, 1.004)},
        19: {"constant": 0.9951},
    }
    decisions = {}
    for number in range(1, 501):
        timer = LuckyTimer(number, **lucky.get(number, {}))
        result = attempt(timer)
        decisions[number] = result.decision
        assert 990.0 < result.holder_us < 1010.0
        if result.confirmed:
            # first and confirming samples are both there to be recorded
            assert timer.taken["coarse"]
            assert timer.taken["confirm"]
    assert [decisions[number] for number in lucky].count("accept") == 0
    assert list(decisions.values()).count("accept") <= 1


@pytest.mark.parametrize("first", [(0.9,), (0.9, 0.9, 0.9), (0.8, 0.81, 0.8), (0.95, 0.95), (0.99, 0.99, 0.99)])
def test_lucky_first_runs_are_never_enough(first: tuple[float, ...]) -> None:
    assert [attempt(LuckyTimer(seed, first)).decision for seed in range(20)].count("accept") == 0


@pytest.mark.parametrize("constant", [0.9951, 0.9953, 0.9960, 0.9975])
def test_gains_just_below_the_threshold_rarely_pass(constant: float) -> None:
    accepted = [attempt(LuckyTimer(seed, constant=constant)).decision for seed in range(60)].count("accept")
    assert accepted <= 6


@pytest.mark.parametrize("constant", [0.99, 0.98, 0.9, 0.5])
def test_gains_above_the_threshold_pass_the_same_timer(constant: float) -> None:
    assert [attempt(LuckyTimer(seed, constant=constant)).decision for seed in range(10)].count("accept") == 10
