"""Stale clocks from fed readings: what is refused, what is re-based, and that no guard refuses for ever."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence

import pytest

from cake_tui.model.measure import Clock, Pair, Series
from cake_tui.steps.normal import Judgement, State
from cake_tui.steps.stale import judge

REFUSALS = 5


def series(
    before: float | None,
    after: float | None = None,
    load: float | None = 0.0,
    steal: float | None = 0.0,
    gain: float = 0.0,
) -> Series:
    """One series between two readings of the rate; 1 ms at a rate of 2 additions a nanosecond."""
    rate = before if before is not None and math.isfinite(before) and before > 0 else 2.0
    time_us = 1000.0 * 2.0 / rate
    after = before if after is None else after
    pair = Pair(time_us, time_us * math.exp(-gain), True)
    return Series(
        (pair,), Clock(0.0, rate=before, load=load, steal_pct=steal), Clock(0.1, rate=after, load=load, steal_pct=steal)
    )


def feed(
    readings: Iterable[Series], state: State | None = None, refusals: int = REFUSALS
) -> tuple[State, list[Judgement]]:
    state = state or State()
    judgements = []
    for one in readings:
        state, judgement = judge(state, one, refusals)
        judgements.append(judgement)
    return state, judgements


def codes(judgements: Sequence[Judgement]) -> list[str]:
    return [one.code for judgement in judgements for one in judgement.stale]


def learned(rate: float = 2.0, load: float = 0.0) -> State:
    return feed([series(rate, load=load)] * 6)[0]


# -- quiet --------------------------------------------------------------------------------------------------


def test_steady_clock_is_never_refused_and_becomes_the_normal() -> None:
    state, judgements = feed([series(1.97), series(1.98), series(1.98), series(1.99), series(1.98)] * 20)
    assert all(judgement == Judgement(keep=True) for judgement in judgements)
    assert state.rate == pytest.approx(1.98)


@pytest.mark.parametrize("rate", [None, float("nan"), float("inf"), 0.0, -1.0])
def test_machine_without_a_usable_rate_measures_all_the_same(rate: float | None) -> None:
    _, judgements = feed([series(rate, load=None, steal=None)] * 10)
    assert all(judgement == Judgement(keep=True) for judgement in judgements)


def test_series_without_any_clock_is_kept() -> None:
    _, judgements = feed([Series((Pair(1.0, 1.0, True),))] * 3)
    assert all(judgement.keep for judgement in judgements)


# -- S2 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("before", "after"), [(1.79, 1.79), (1.0, 1.79), (1.79, 1.0), (0.35, 0.35)])
def test_clock_below_nine_tenths_of_the_normal_repeats_the_series(before: float, after: float) -> None:
    _, [judgement] = feed([series(before, after)], learned())
    assert not judgement.keep
    assert codes([judgement]) == ["S2"]
    assert "expected 2" in judgement.stale[0].saw
    assert judgement.pause_s == 0.0  # taking the series again is what warms the clock up


def test_one_preempted_reading_is_no_slow_clock() -> None:
    # The loop of a reading was interrupted; the other reading of the series shows the clock as it is.
    _, judgements = feed([series(2.0, 0.07), series(2.0, 2.0), series(2.0, 2.0)], learned())
    assert codes(judgements) == []


def test_clock_just_above_nine_tenths_is_kept() -> None:
    assert feed([series(1.81, 1.805)], learned())[1][0].keep


def test_three_readings_on_the_move_are_a_ramp() -> None:
    _, judgements = feed([series(1.0, 1.2), series(1.5, 1.7)])
    assert [judgement.keep for judgement in judgements] == [True, False]
    assert codes(judgements) == ["S2"]
    assert "steady" in judgements[1].stale[0].saw


def test_one_step_is_no_ramp() -> None:
    _, judgements = feed([series(1.90, 1.90), series(2.0, 2.0), series(2.0, 2.0)])
    assert codes(judgements) == []


def test_idle_clock_that_recovers_is_repeated_once() -> None:
    _, judgements = feed([series(0.35, 2.0), series(2.0), series(2.0)], learned())
    assert [judgement.keep for judgement in judgements] == [False, True, True]
    assert not any(judgement.notice for judgement in judgements)


# -- S4 and case A10 ----------------------------------------------------------------------------------------


def test_three_series_off_by_more_than_two_percent_are_a_new_normal() -> None:
    state, judgements = feed([series(1.94)] * 3, learned())
    assert all(judgement.keep for judgement in judgements)
    assert codes(judgements) == ["S4"]
    assert judgements[-1].rebaseline
    assert "1.94" in judgements[-1].stale[0].saw
    assert "expected 2" in judgements[-1].stale[0].saw
    assert state.rate == pytest.approx(1.94)


@pytest.mark.parametrize("rates", [(1.94, 1.94, 2.0, 1.94, 1.94), (1.97,) * 9, (2.03, 2.0, 2.03, 2.0)])
def test_clock_that_comes_back_or_stays_within_two_percent_is_the_old_normal(rates: tuple[float, ...]) -> None:
    state, judgements = feed([series(rate) for rate in rates], learned())
    assert codes(judgements) == []
    assert state.rate == pytest.approx(2.0)


def test_faster_clock_is_a_shift_as_well() -> None:
    state, judgements = feed([series(2.2)] * 3, learned())
    assert codes(judgements) == ["S4"]
    assert state.rate == pytest.approx(2.2)


def test_lower_clock_for_good_is_named_with_both_clocks_and_taken_as_normal() -> None:
    # 1980 MHz for twenty candidates, 1590 from then on
    state, _ = feed([series(1.98)] * 20)
    state, judgements = feed([series(1.59)] * 8, state)
    assert [judgement.keep for judgement in judgements] == [False] * 4 + [True] * 4
    assert judgements[4].rebaseline
    assert judgements[4].recalibrate
    assert "1.59" in judgements[4].stale[0].saw
    assert "1.98" in judgements[4].stale[0].saw
    assert state.rate == pytest.approx(1.59)
    assert not any(judgement.stale for judgement in judgements[5:])


# -- S9 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [1.0, 2.0, 63.0])
def test_tasks_of_others_pause_and_then_share(load: float) -> None:
    state, judgements = feed([series(2.0, load=load)] * 7, learned())
    assert [judgement.keep for judgement in judgements] == [False] * 4 + [True] * 3
    assert sum(judgement.pause_s for judgement in judgements) == pytest.approx(30.0)
    pauses = [judgement.pause_s for judgement in judgements[:4]]
    assert pauses == sorted(pauses)
    assert state.shared
    assert judgements[4].recalibrate
    assert "shared" in judgements[4].notice


def test_tasks_seen_on_one_side_only_are_no_load() -> None:
    one = series(2.0)
    one = Series(one.pairs, Clock(0.0, rate=2.0, load=3.0), Clock(0.1, rate=2.0, load=0.0))
    assert feed([one], learned())[1][0].keep


def test_stolen_time_is_foreign_load() -> None:
    _, [judgement] = feed([series(2.0, steal=20.0)], learned())
    assert codes([judgement]) == ["S9"]
    assert "stolen" in judgement.stale[0].saw


def test_load_that_was_there_from_the_start_is_normal() -> None:
    _, judgements = feed([series(2.0, load=3.0, steal=12.0)] * 20)
    assert codes(judgements) == []


def test_machine_is_its_own_again_after_ten_quiet_series() -> None:
    state, _ = feed([series(2.0, load=2.0)] * 6, learned())
    state, judgements = feed([series(2.0)] * 10, state)
    assert [judgement.recalibrate for judgement in judgements] == [False] * 9 + [True]
    assert not state.shared
    assert not feed([series(2.0, load=2.0)], state)[1][0].keep


# -- never a silent nothing: case A08 -----------------------------------------------------------------------

STEADY = {
    "half the clock": (1.005, 1.005, 0.0, 0.0),
    "a tenth": (0.2, 0.2, 0.0, 0.0),
    "just below": (1.7, 1.7, 0.0, 0.0),
    "slower after than before": (1.9, 1.6, 0.0, 0.0),
    "busy": (2.0, 2.0, 4.0, 0.0),
    "stolen": (2.0, 2.0, 0.0, 40.0),
    "busy and slow": (1.2, 1.2, 4.0, 40.0),
    "jumping within each series": (2.0, 2.4, 0.0, 0.0),
}


@pytest.mark.parametrize("name", STEADY)
@pytest.mark.parametrize("refusals", [1, 2, 5, 9])
def test_any_steady_state_is_measured_after_so_many_refusals(name: str, refusals: int) -> None:
    before, after, load, steal = STEADY[name]
    _, judgements = feed([series(before, after, load, steal)] * 60, learned(), refusals)
    kept = [judgement.keep for judgement in judgements]
    assert not all(not keep for keep in kept[:refusals])
    # and once it was taken as normal it is not refused again
    assert kept[2 * refusals :] == [True] * (60 - 2 * refusals)
    assert sum(judgement.pause_s for judgement in judgements) <= 60.0
    notices = [judgement.notice for judgement in judgements if judgement.notice]
    refused = [judgement for judgement in judgements if not judgement.keep]
    if refused:
        assert len(notices) >= 1


def test_the_notice_names_guard_seen_expected_and_setting() -> None:
    _, judgements = feed([series(1.005)] * 5, learned(1.98))
    [notice] = [judgement.notice for judgement in judgements if judgement.notice]
    for word in ("S2", "5 series in a row", "1.005", "1.98", "guard_refusals"):
        assert word in notice


def test_two_guards_in_turn_do_not_refuse_for_ever() -> None:
    readings = [series(1.2) if index % 2 else series(2.0, load=5.0) for index in range(40)]
    _, judgements = feed(readings, learned())
    refused_in_a_row = longest = 0
    for judgement in judgements:
        refused_in_a_row = 0 if judgement.keep else refused_in_a_row + 1
        longest = max(longest, refused_in_a_row)
    assert longest < REFUSALS
    assert all(judgement.keep for judgement in judgements[20:])


def test_clock_that_never_settles_is_measured_with_its_own_steps_as_normal() -> None:
    wild = [
        series(2.0 * (1.0 + 0.06 * math.sin(index)), 2.0 * (1.0 + 0.06 * math.cos(3 * index))) for index in range(200)
    ]
    _, judgements = feed(wild)
    kept = [judgement.keep for judgement in judgements]
    assert sum(kept) >= 170
    assert sum(kept[100:]) >= 90


def test_machine_that_is_busy_now_and_then_costs_less_waiting_each_time() -> None:
    state, waited = learned(), []
    for _ in range(5):
        state, judgements = feed([series(2.0, load=3.0)] * 8, state)
        waited.append(sum(judgement.pause_s for judgement in judgements))
        state, _ = feed([series(2.0)] * 400, state)
        assert not state.shared
    assert waited == pytest.approx([30.0, 15.0, 7.5, 3.75, 1.875])


# -- a state that is never quite the same: what the guard may cost --------------------------------------------

SERIES_S = 0.2


def restless(seed: int, count: int, loads: tuple[int, int], rates: tuple[float, float] = (4.05, 4.32)) -> list[Series]:
    """Readings of a machine that others always use: load and clock within a range, some time stolen."""
    rng = random.Random(seed)
    return [
        series(
            rng.uniform(*rates),
            rng.uniform(*rates),
            load=float(min(rng.randint(*loads), rng.randint(*loads))),
            steal=rng.choice((0.0, 0.0, 0.0, 1.0, 6.2)),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("loads", [(3, 8), (0, 3), (0, 12)])
def test_foreign_load_that_stays_costs_a_fifth_of_the_time_at_most(seed: int, loads: tuple[int, int]) -> None:
    _, judgements = feed(restless(seed, 1500, loads))
    given_in = next((index for index, judgement in enumerate(judgements) if judgement.notice), 0)
    before, after = judgements[: given_in + 1], judgements[given_in + 1 :]
    assert sum(judgement.pause_s for judgement in before) <= 30.0 + 0.02 * len(before)
    lost_s = sum(judgement.pause_s + SERIES_S * (not judgement.keep) for judgement in after)
    assert lost_s <= 0.2 * (lost_s + SERIES_S * sum(judgement.keep for judgement in after))


@pytest.mark.parametrize("seed", range(4))
def test_clock_that_wanders_between_two_rates_does_not_shift_for_ever(seed: int) -> None:
    rng = random.Random(seed)
    readings = [series(rng.choice((4.10, 4.22))) for _ in range(600)]
    _, judgements = feed(readings)
    assert codes(judgements).count("S4") <= 3
    assert all(judgement.keep for judgement in judgements)


def test_foreign_load_that_lets_one_series_pass_is_still_taken_as_normal() -> None:
    busy, quiet = series(2.0, load=3.0), series(2.0)
    _, judgements = feed([busy, busy, quiet] * 10, learned())
    refused = [judgement.keep for judgement in judgements].count(False)
    assert refused == REFUSALS - 1
    [notice] = [judgement.notice for judgement in judgements if judgement.notice]
    assert "in a row" not in notice


def test_refusals_long_ago_do_not_count() -> None:
    busy, quiet = [series(2.0, load=3.0)] * 4, [series(2.0)] * 5
    _, judgements = feed((*busy, *quiet) * 4, learned())
    assert not any(judgement.notice for judgement in judgements)
    assert sum(judgement.pause_s for judgement in judgements) <= 31.0


def test_after_it_gave_in_the_guard_still_sees_worse() -> None:
    state, _ = feed([series(2.0, load=3.0)] * 10, learned())
    assert state.shared
    state, _ = feed([series(2.0, load=3.0)] * 20, state)
    assert codes(feed([series(2.0, load=12.0)], state)[1]) == ["S9"]
    assert not feed([series(2.0, load=12.0)], state)[1][0].keep
    assert not feed([series(1.2, load=3.0)], state)[1][0].keep


def test_series_that_is_kept_for_lack_of_credit_says_so() -> None:
    state, _ = feed([series(2.0, load=3.0)] * 5, learned())
    _, [judgement] = feed([series(1.2, load=3.0)], state)
    assert judgement.keep
    [stale] = judgement.stale
    assert stale.code == "S2"
    assert "kept" in stale.reaction


def test_new_normal_clocks_name_both_rates() -> None:
    _, judgements = feed([series(1.94)] * 3, learned())
    [shift] = judgements[-1].stale
    assert (shift.rate_before, shift.rate_now) == (pytest.approx(2.0), pytest.approx(1.94))
    _, judgements = feed([series(1.59)] * 5, learned())
    taken = judgements[-1].stale[0]
    assert (taken.rate_before, taken.rate_now) == (pytest.approx(2.0), pytest.approx(1.59))
    assert all(stale.rate_now is None for judgement in judgements[:-1] for stale in judgement.stale)


def test_first_spike_of_load_is_not_the_normal() -> None:
    state, _ = feed([series(2.0, load=9.0)] + [series(2.0, load=1.0)] * 5)
    assert not feed([series(2.0, load=3.0)], state)[1][0].keep
