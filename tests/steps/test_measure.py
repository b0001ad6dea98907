"""Coarse measurements: three series of one pair, and candidate 0 next to itself."""

from __future__ import annotations

import math

import pytest

from cake_tui.model.measure import Pair, Series
from cake_tui.steps.measure import Ask, coarse, holder_us, ratios


def test_candidate_is_measured_by_three_series_of_one_pair() -> None:
    asked: list[Ask] = []
    times = iter([(100.0, 50.0), (100.0, 90.0), (300.0, 60.0)])

    def take(ask: Ask) -> Series:
        asked.append(ask)
        holder, candidate = next(times)
        return Series((Pair(holder, candidate, True),))

    found = coarse(take)
    assert [(ask.pairs, ask.purpose, ask.index) for ask in asked] == [
        (1, "coarse", 0),
        (1, "coarse", 1),
        (1, "coarse", 2),
    ]
    assert found.runs_us == (50.0, 90.0, 60.0)
    assert found.avg_us == 60.0
    assert found.gain == pytest.approx(math.log(2.0))
    assert len(found.series) == 3


def test_baseline_is_the_median_of_three_of_four_runs_without_the_first() -> None:
    one = Series((Pair(900.0, 110.0, True), Pair(130.0, 120.0, False)))
    found = coarse(lambda ask: one, baseline=True)
    assert found.runs_us == (110.0, 120.0, 130.0)  # in the order in which they ran
    assert found.avg_us == 120.0
    assert found.gain == 0.0


def test_holders_time_is_the_median_over_all_pairs() -> None:
    assert holder_us([Series((Pair(1.0, 9.0, True), Pair(5.0, 9.0, False))), Series((Pair(3.0, 9.0, True),))]) == 3.0


def test_series_without_pairs_is_no_measurement() -> None:
    with pytest.raises(ValueError, match="without pairs"):
        ratios(Series(()))
