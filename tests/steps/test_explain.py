"""Findings in their order, advice that lost credit, trends of a round."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from cake_tui.model.history import History
from cake_tui.model.move import Move, Proposal
from cake_tui.model.row import Row
from cake_tui.model.schedule import Schedule
from cake_tui.steps.explain import failed_advice, find, summary
from tests.rules.evidence import evidence

HINTS = {
    "apply_register_block": ("low_arithmetic_intensity", "spills"),
    "apply_unroll": ("no_vector_code", "spills"),
    "apply_vectorize": ("no_vector_code", "memory_bound"),
    "revert_last": (),
    "my_own_action": ("spills",),
}
TROUBLED: dict[str, Any] = {
    "facts": {"vector_share": 0.3, "spill_stores": 60, "spill_loads": 90, "fma_instructions": 56},
    "profile": {"sm_busy_pct": 12.0},
    "agreement": {"bound_share": 0.9},
    "pair_noise": 0.06,
}


def test_structural_findings_come_first_and_each_kind_by_confidence() -> None:
    found = find(evidence(TROUBLED), HINTS)
    assert [(one.kind, one.rule) for one in found] == [
        ("structural", "no_vector_code"),
        ("numeric", "spills"),
        ("trust", "error_margin"),
        ("trust", "noise"),
    ]
    assert found[2].confidence > found[3].confidence


def test_actions_are_those_that_can_be_used_and_those_that_the_menu_hints_at() -> None:
    spills = next(one for one in find(evidence(TROUBLED), HINTS) if one.rule == "spills")
    assert spills.actions == ("apply_register_block", "apply_unroll", "my_own_action")
    assert all(one.actions == () for one in find(evidence(TROUBLED), {}))


def test_advice_is_the_rules_words_and_the_users_where_there_are_some(tmp_path: Path) -> None:
    (tmp_path / "spills.md").write_text("*Try*: fewer rows, my way", encoding="utf-8")
    by_rule = {one.rule: one.advice for one in find(evidence(TROUBLED), HINTS, tmp_path)}
    assert by_rule["spills"] == "fewer rows, my way"
    assert by_rule["noise"].startswith("end other work")


@pytest.mark.parametrize(("failures", "factor"), [(0, 1.0), (1, 1.0), (2, 0.5), (3, 0.5), (4, 0.25)])
def test_rule_whose_advice_failed_twice_loses_confidence(failures: int, factor: float) -> None:
    def spills(**changes: Any) -> float:
        return next(one.confidence for one in find(evidence({**TROUBLED, **changes}), HINTS) if one.rule == "spills")

    assert spills(failed_advice={"spills": failures}) == pytest.approx(factor * spills(), abs=1e-3)


def test_advice_that_always_failed_is_silent() -> None:
    assert "spills" not in {one.rule for one in find(evidence({**TROUBLED, "failed_advice": {"spills": 40}}), HINTS)}


def test_ordinary_candidate_has_no_findings() -> None:
    assert find(evidence(), HINTS) == ()


# -- advice that failed -------------------------------------------------------------------------------------


def row(number: int, action: str, base: int = 0, **values: Any) -> Row:
    chosen = values.pop("chosen_by", "finding")
    return Row(number, 1, Proposal(base, (Move(action),), "", chosen, "bandit"), outcome="Measured", **values)


def history_of(*rows: Row) -> History:
    start = Row(0, 0, Proposal(0, (), "", "start", ""), labels=("spills", "no vector code"), outcome="Measured")
    return History(rows=[start, *rows])


def test_followed_advice_without_a_win_is_counted_by_its_rule() -> None:
    history = history_of(row(1, "apply_register_block", verdict="slower"), row(2, "apply_register_block"))
    # low_arithmetic_intensity suggests the action too, but had not spoken about the base
    assert failed_advice(history, HINTS) == {"spills": 2}


def test_a_win_gives_the_rule_its_credit_back() -> None:
    history = history_of(
        row(1, "apply_register_block"),
        row(2, "apply_register_block", verdict="accepted"),
        row(3, "apply_register_block"),
    )
    assert failed_advice(history, HINTS) == {"spills": 1}


def test_moves_chosen_otherwise_and_endings_that_say_nothing_are_not_counted() -> None:
    interrupted = row(2, "apply_register_block")
    interrupted.outcome = "Interrupted"
    odd_base = row(3, "apply_register_block", base=99)
    history = history_of(row(1, "apply_register_block", chosen_by="random"), interrupted, odd_base)
    assert failed_advice(history, HINTS) == {}


# -- the summary of a round ---------------------------------------------------------------------------------


def tried(number: int, standing: float | None, structure: str = "packed", **knobs: int) -> Row:
    schedule = Schedule.of(structure, {"unroll": 2, "vector": 16, **knobs})
    proposal = Proposal(0, (Move("apply_unroll"),), "", "probe", "bandit")
    outcome = "Measured" if standing is not None else "BuildFailed"
    return Row(number=number, round=7, proposal=proposal, schedule=schedule, standing=standing, outcome=outcome)


def summed(*rows: Row, noise: float = 0.003) -> dict[str, Any]:
    history = History(rows=[tried(0, 1.0), *rows], round=7, finished_round=6)
    return summary(history, rows, noise)


def test_slope_of_a_knob_is_the_change_of_speed_from_the_base() -> None:
    told = summed(tried(1, 1.0 + math.log(1.02), unroll=4), tried(2, 1.0 - math.log(1.1), unroll=8))
    assert told["number"] == 7
    assert told["trends"] == [
        {"knob": "unroll", "from": 2, "to": 8, "change_pct": pytest.approx(-9.091, abs=1e-3), "noise_pct": 0.201},
        {"knob": "unroll", "from": 2, "to": 4, "change_pct": 2.0, "noise_pct": 0.201},
    ]


def test_two_changed_knobs_or_another_structure_are_no_slope_of_one() -> None:
    told = summed(tried(1, 1.1, unroll=4, vector=8), tried(2, 1.5, "tiled"), tried(3, None, unroll=1))
    assert told["trends"] == []


def test_structures_are_counted_with_their_best_speed() -> None:
    told = summed(tried(1, math.log(50.0), "tiled"), tried(2, None, "tiled"), tried(3, math.log(120.0)))
    assert told["structures"] == [
        {"structure": "packed", "candidates": 1, "measured": 1, "accepted": 0, "best_speedup": 120.0},
        {"structure": "tiled", "candidates": 2, "measured": 1, "accepted": 0, "best_speedup": 50.0},
    ]


def test_repeated_measurements_of_one_step_share_their_noise() -> None:
    twice = summed(tried(1, 1.1, unroll=4), tried(2, 1.1, unroll=4))["trends"]
    assert len(twice) == 1
    assert twice[0]["noise_pct"] == pytest.approx(0.201 / math.sqrt(2), abs=1e-3)


def test_round_without_candidates_is_summed_up_all_the_same() -> None:
    assert summed() == {"number": 7, "trends": [], "structures": []}
