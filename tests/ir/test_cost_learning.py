"""What measurements teach, and which proposals go on: the correction and the screening."""

from __future__ import annotations

import math
import random

import pytest

from cake_tui.ir.cost import Correction, CostRow, Estimate, screen


def made(us: float, structure: str = "tiled", error: float = 0.01, **terms: float) -> Estimate:
    return Estimate(structure, us, us, tuple(sorted(terms.items())), error=error)


def test_a_constant_factor_is_learnt_and_the_expected_error_shrinks() -> None:
    correction = Correction()
    before = correction.error
    for at in range(20):
        correction.learn(CostRow.of(made(100.0 + at), 3 * (100.0 + at)))
    found = correction.apply(made(50.0))
    assert found.predicted_us == pytest.approx(150.0, rel=0.03)
    assert found.roofline_us == 50.0
    assert found.error < before / 2


def test_the_weight_of_a_term_is_learnt_apart_from_the_structure() -> None:
    rng = random.Random(1)
    correction = Correction()
    for _ in range(120):
        spill, structure = rng.random(), rng.choice(["tiled", "packed"])
        factor = math.exp(0.8 * spill) * (2.0 if structure == "packed" else 1.0)
        correction.learn(CostRow.of(made(100.0, structure, spill=spill), 100.0 * factor))
    for structure, factor in (("tiled", 1.0), ("packed", 2.0)):
        found = correction.apply(made(100.0, structure, spill=0.5))
        assert found.predicted_us == pytest.approx(100.0 * math.exp(0.4) * factor, rel=0.05)
    assert correction.error < 0.25


def test_the_same_rows_give_the_same_numbers_and_broken_ones_are_passed_over() -> None:
    rows = [CostRow.of(made(100.0, spill=0.1 * at), 110.0 + at) for at in range(10)]
    broken = [CostRow("tiled", 100.0, (), math.nan), CostRow("tiled", 0.0, (), 5.0), CostRow("tiled", 1.0, (), -1.0)]
    one, other = Correction.of(rows), Correction.of([*rows, *broken])
    assert one.apply(made(80.0, spill=0.3)) == other.apply(made(80.0, spill=0.3))


def test_a_structure_never_seen_is_predicted_from_what_all_share() -> None:
    correction = Correction.of([CostRow.of(made(100.0), 400.0) for _ in range(30)])
    assert 150.0 < correction.apply(made(100.0, "new")).predicted_us <= 400.0


def test_an_estimate_that_abstains_stays_as_it_is() -> None:
    blind = Estimate("opaque", 1.0, 1.0, abstains="no numbers")
    assert Correction.of([CostRow.of(made(100.0), 400.0)]).apply(blind) is blind


def test_screening_keeps_the_fastest() -> None:
    estimates = [made(us) for us in (400.0, 100.0, 300.0, 200.0)]
    assert screen(estimates, 2, 0.0, random.Random(0)) == ([1, 3], [], [0, 2])


def test_a_tie_within_the_models_own_error_is_not_dropped() -> None:
    close = [made(us, error=0.2) for us in (100.0, 104.0, 108.0, 400.0)]
    assert screen(close, 2, 0.0, random.Random(0)) == ([0, 1, 2], [], [3])


def test_the_only_candidate_of_a_structure_is_never_dropped() -> None:
    estimates = [made(100.0), made(110.0), made(900.0), made(950.0, "split_k"), made(120.0)]
    kept, _, dropped = screen(estimates, 2, 0.0, random.Random(0))
    assert 3 in kept
    assert dropped == [2, 4]


def test_what_has_no_estimate_goes_on() -> None:
    blind = Estimate("text-1", 1.0, 1.0, abstains="why")
    estimates = [None, made(500.0), made(100.0), blind, made(300.0), made(200.0)]
    kept, _, dropped = screen(estimates, 3, 0.0, random.Random(0))
    assert {0, 2, 3} <= set(kept)
    assert set(dropped) == {1, 4, 5}


def test_a_model_that_has_measured_nothing_expects_a_large_error_and_drops_only_what_is_far_off() -> None:
    fresh = Correction()
    estimates = [fresh.apply(made(us)) for us in (100.0, 120.0, 150.0, 180.0, 900.0)]
    assert screen(estimates, 2, 0.0, random.Random(0)) == ([0, 1, 2, 3], [], [4])


def test_one_in_ten_of_the_dropped_is_run_all_the_same_by_seed() -> None:
    estimates = [made(100.0 * 2**at) for at in range(8)]
    audited = 0
    for seed in range(500):
        kept, extra, dropped = screen(estimates, 4, 0.1, random.Random(seed))
        assert sorted(kept + extra + dropped) == list(range(8))
        assert (kept, extra, dropped) == screen(estimates, 4, 0.1, random.Random(seed))
        audited += len(extra)
    # 2000 dropped, one in ten: 200, four standard deviations of 13
    assert 147 < audited < 253


def test_fewer_proposals_than_places_all_go_on() -> None:
    assert screen([made(5.0), None], 4, 0.1, random.Random(0)) == ([0, 1], [], [])
    assert screen([], 4, 0.1, random.Random(0)) == ([], [], [])
