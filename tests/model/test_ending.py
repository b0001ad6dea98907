"""Endings in words: what the gate found is told apart, and a screened candidate says what it was held against."""

from __future__ import annotations

from typing import get_args

import pytest

from cake_tui.model import event as ev
from cake_tui.model.ending import ENDINGS, meaning_of, reason_of, word_of
from cake_tui.model.history import History
from cake_tui.model.measure import GateResult
from cake_tui.model.move import Move, Proposal
from cake_tui.model.outcome import Measured, Outcome, Repeated, Screened, Verdict
from cake_tui.model.row import Row
from cake_tui.model.schedule import Schedule

MOVE = Proposal(0, (Move("apply_unroll", (("factor", 4),)),), "weight", "weight", "bandit")


def planned(number: int, predicted_us: float | None, *, round_number: int = 1, audit: bool = False) -> ev.Planned:
    return ev.Planned(
        candidate=number, round=round_number, proposal=MOVE, level="micro", schedule=Schedule.of("tiled"),
        predicted_us=predicted_us, source_sha256=f"{number:064x}", audit=audit,
    )  # fmt: skip


def folded(*events: ev.Event, **settings: object) -> History:
    history = History()
    history.settings = dict(settings)
    for event in (planned(0, 900.0, round_number=0), measured(0, None), *events):
        history.apply(event)
    return history


def measured(number: int, verdict: Verdict | None, step: str = "gate") -> ev.CandidateEnded:
    return ev.CandidateEnded(candidate=number, round=1, outcome=Measured(step=step, verdict=verdict, avg_us=100.0))


def coarse(number: int, gain: float) -> ev.Coarse:
    return ev.Coarse(candidate=number, against=0, seconds=0.1, avg_us=100.0, runs_us=(100.0,), gain=gain)


def gated(number: int, decision: str, gain: float, gain_low: float, looks: int) -> ev.GateEnded:
    result = GateResult(decision, gain, gain_low, looks, 8, decision == "accept", "as it was", 100.0, 100.0)  # type: ignore[arg-type]
    return ev.GateEnded(candidate=number, against=0, seconds=1.0, result=result)


@pytest.mark.parametrize(
    ("gain", "gain_low", "looks", "word"),
    [
        (0.001, -0.002, 2, "no gain"),  # upper bound +0.4 %: it may be a little faster
        (-0.001, -0.004, 1, "no gain"),  # upper bound +0.2 %
        (-0.02, -0.025, 1, "slower"),  # upper bound -1.5 %
        (-0.05, -0.2, 0, "slower"),  # every pair of a fresh look 0, whatever three values say of a bound
        (0.004, 0.001, 0, "no gain"),  # obvious at look 0, not confirmed
    ],
)
def test_a_rejection_says_whether_it_is_slower_or_only_no_gain(
    gain: float, gain_low: float, looks: int, word: str
) -> None:
    history = folded(
        planned(1, 90.0), coarse(1, gain), gated(1, "reject", gain, gain_low, looks), measured(1, "slower")
    )
    row = history.rows[1]
    assert word_of(row.ended_as) == word
    assert ("above 0.5 %" in meaning_of(history, row)) == (word == "no gain")
    assert "#0" in meaning_of(history, row)
    assert history.rows[1].verdict == "slower"  # the record keeps its names


def test_what_lost_every_coarse_pair_is_slower() -> None:
    history = folded(planned(1, 90.0), coarse(1, -0.3), measured(1, "slower", "measure"))
    assert history.rows[1].ended_as == "slower"


def test_the_threshold_is_the_sessions_own() -> None:
    events = (planned(1, 90.0), coarse(1, 0.0), gated(1, "reject", 0.001, -0.002, 2), measured(1, "slower"))
    assert "no gain above 2 %" in meaning_of(folded(*events, accept_pct=2), folded(*events).rows[1])
    assert "no gain above 0.5 %" in meaning_of(folded(*events, accept_pct="?"), folded(*events).rows[1])


def screened(number: int, predicted_us: float | None, round_number: int = 1) -> ev.CandidateEnded:
    outcome = Screened(step="cost", reason="predicted", predicted_us=predicted_us)
    return ev.CandidateEnded(
        candidate=number, round=round_number, outcome=outcome, proposal=MOVE, level="micro",
        schedule=Schedule.of("tiled"), predicted_us=predicted_us,
    )  # fmt: skip


def test_a_screened_candidate_says_its_prediction_and_what_it_was_held_against() -> None:
    history = folded(
        planned(1, 50.0, round_number=3), planned(2, 100.0, round_number=4), planned(3, 120.0, round_number=4),
        planned(4, 400.0, round_number=4, audit=True), planned(5, None, round_number=4), screened(6, 180.0, 4),
    )  # fmt: skip
    told = meaning_of(history, history.rows[6])
    assert "predicted 180 us by the cost model, 1.50 times the slowest prediction that went on (#3, 120 us)" in told
    assert "10 % of such are run all the same (in this round #4)" in told
    assert reason_of(history.rows[6]) == ""


@pytest.mark.parametrize("events", [(), (planned(1, None),), (planned(1, 500.0),)], ids=["alone", "abstained", "later"])
def test_a_screened_candidate_with_nothing_below_it_still_has_words(events: tuple[ev.Event, ...]) -> None:
    history = folded(*events, screened(len(events) + 1, 180.0), screened(len(events) + 2, None), audit=0.0)
    for row in history.rows[-2:]:
        told = meaning_of(history, row)
        assert "not built" in told
        assert "all the same" not in told


def test_a_repeated_one_says_how_the_first_ended() -> None:
    again: Outcome = Repeated(step="lower", of=0)
    history = folded(ev.CandidateEnded(candidate=1, round=1, outcome=again, proposal=MOVE))
    assert meaning_of(history, history.rows[1]) == "the same source as #0 (baseline): answered from the record"


def test_every_outcome_and_verdict_has_a_word_and_a_meaning() -> None:
    names = {kind.__name__ for kind in get_args(Outcome)} - {"Measured"} | set(get_args(Verdict))
    assert names | {"baseline", "in flight", "no_gain"} == set(ENDINGS)
    assert len({ending.word for ending in ENDINGS.values()}) == len(ENDINGS)
    assert all(ending.meaning for ending in ENDINGS.values())
    newer = Row(1, 1, MOVE, outcome="Melted")
    assert (word_of(newer.ended_as), meaning_of(History(), newer)) == ("Melted", "")
