"""One session from start to play-off: what every candidate's record must hold, whatever the agent proposes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from cake_tui import registry
from cake_tui.menu import Menu
from cake_tui.model import event as ev
from cake_tui.model.history import History
from cake_tui.model.move import Move, Proposal
from cake_tui.model.outcome import Crashed, Measured, Repeated
from tests.loop.driving import Session


class Listed:
    """Proposes from a list, round by round; then nothing."""

    def __init__(self, *rounds: Sequence[str], base: int | None = None) -> None:
        self.rounds = rounds
        self.base = base

    def propose(self, history: History, menu: Menu, n: int, rng: random.Random) -> Sequence[Proposal]:
        at = history.round - 1
        texts = self.rounds[at] if at < len(self.rounds) else ()
        base = history.base_override if history.base_override is not None else history.incumbent or 0
        base = self.base if self.base is not None else base
        return [Proposal(base, (menu.parse(text),), "listed", "script", "test") for text in texts]


def agent(name: str) -> object:
    return registry.load("agents", name)({})


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path, candidates=24, screen=False)


def test_every_candidate_ends_exactly_once_and_numbers_have_no_holes(tmp_path: Path) -> None:
    session = Session(tmp_path, "cliffs,noise=1,drift=1,failures=1,crashed=0.05,wrong_answer=0.1", candidates=30)
    assert session.run(agent("bandit")) == "30 of 30 candidates"
    ended = [event.candidate for event in session.of(ev.CandidateEnded)]
    assert sorted(ended) == list(range(len(session.history.rows)))
    assert [row.number for row in session.history.rows] == list(range(len(ended)))
    planned = [event.candidate for event in session.of(ev.Planned)]
    assert len(planned) == len(set(planned))


def test_folding_the_same_events_again_gives_the_same_history(session: Session) -> None:
    session.run(agent("random"))
    again = History()
    for event in session.events:
        again.apply(event)
    assert msgspec.json.encode(again) == msgspec.json.encode(session.history)


def test_the_incumbent_is_the_last_accepted_candidate_and_is_published(session: Session) -> None:
    session.run(agent("bandit"))
    accepted = [
        e.candidate
        for e in session.of(ev.CandidateEnded)
        if isinstance(e.outcome, Measured) and e.outcome.verdict == "accepted"
    ]
    accepted += [e.candidate for e in session.of(ev.PlayedOff) if e.result and e.result.decision == "accept"]
    assert accepted, "a quiet surface must let somebody win"
    assert session.history.incumbent == accepted[-1]
    assert session.texts.best is not None
    assert session.texts.best[0] == accepted[-1]
    source = session.texts.files[accepted[-1], "kernel.c"]
    assert session.texts.best[1]["kernel.c"] == source


def test_candidate_0_is_measured_and_never_accepted(session: Session) -> None:
    session.run(Listed())
    first = session.of(ev.CandidateEnded)[0]
    assert isinstance(first.outcome, Measured)
    assert first.outcome.verdict is None
    assert session.history.counts.get("accepted", 0) == 0


def test_the_same_source_is_answered_from_the_record(session: Session) -> None:
    session.run(Listed(["apply_tiling(64)"], ["apply_tiling(64)"], base=0))
    one, two = session.of(ev.CandidateEnded)[1:3]
    assert isinstance(one.outcome, Measured)
    assert isinstance(two.outcome, Repeated)
    assert two.outcome.of == one.candidate
    built = [event.candidate for event in session.of(ev.BuildEnded)]
    assert two.candidate not in built


def test_twenty_rounds_without_a_new_source_exhaust_the_space(session: Session) -> None:
    assert session.run(Listed()) == "space exhausted: 20 rounds without a new source"


def test_revert_last_moves_the_base_to_the_parent_and_takes_no_number(session: Session) -> None:
    rounds = (["apply_tiling(64)"], ["revert_last()"], ["apply_tiling(32)"])
    session.run(Listed(*rounds), until=lambda event: isinstance(event, ev.RoundEnded) and event.round == 3)
    won = session.history.rows[1]
    assert won.verdict == "accepted", won.reason
    reverted = session.of(ev.BaseReverted)
    assert [event.base for event in reverted] == [0]
    assert len(session.history.rows) == 3
    assert session.history.rows[2].proposal.base == 0


def test_revert_last_is_refused_while_the_incumbent_is_the_baseline(session: Session) -> None:
    session.run(Listed(["revert_last()"]), until=lambda event: isinstance(event, ev.RoundEnded) and event.round == 2)
    assert not session.of(ev.BaseReverted)
    assert any("candidate 0" in event.text for event in session.of(ev.Noticed))


def test_an_injected_move_takes_the_first_slot_and_is_never_screened(tmp_path: Path) -> None:
    session = Session(tmp_path, candidates=30, round=2)
    sent = False

    def after_first_round(event: ev.Event) -> bool:
        nonlocal sent
        if isinstance(event, ev.RoundEnded) and event.round == 1 and not sent:
            sent = True
            moves = [msgspec.to_builtins(Move("apply_tiling", (("tile_size", 64),)))]
            session.record(ev.RequestTaken(id="r1", who="ada", what="inject", body={"moves": moves}))
        return isinstance(event, ev.RoundEnded) and event.round == 2

    session.run(agent("random"), until=after_first_round)
    first = next(row for row in session.history.rows if row.round == 2)
    assert first.proposal.who == "ada"
    assert first.proposal.chosen_by == "person"
    assert first.outcome != "Screened"
    assert not session.history.queue


def test_a_base_without_a_time_is_dropped_with_its_reason(session: Session) -> None:
    session.run(Listed(["apply_tiling(64)"], base=999), until=lambda event: isinstance(event, ev.RoundEnded))
    dropped = session.of(ev.ProposalDropped)
    assert len(dropped) == 1
    assert "999" in dropped[0].reason


def _first_without_a_step(session: Session, numbers: list[int]) -> int:
    """The candidate whose next step must have been in flight: steps go through a round in this order."""
    for kind in (ev.BuildEnded, ev.CheckEnded, ev.Coarse, ev.GateEnded):
        without = [number for number in numbers if number not in {event.candidate for event in session.of(kind)}]
        if without:
            return min(without)
    return min(numbers)


@pytest.mark.parametrize("leave_at", [ev.Planned, ev.BuildEnded, ev.CheckEnded, ev.Coarse, ev.GateEnded])
def test_after_a_crash_a_candidate_goes_on_under_its_number(tmp_path: Path, leave_at: type[ev.Event]) -> None:
    session = Session(tmp_path, candidates=12, screen=False)
    session.run(agent("random"), until=lambda event: isinstance(event, leave_at) and getattr(event, "candidate", 0) > 0)
    open_rows = [row.number for row in session.history.in_flight()]
    assert open_rows
    built_before = [event.candidate for event in session.of(ev.BuildEnded)]
    in_flight = _first_without_a_step(session, open_rows)
    session.record(ev.EngineStarted(pid=2, host="here"))
    session.run(agent("random"))
    assert not list(session.history.in_flight())
    assert sum(isinstance(event, ev.Planned) and event.candidate == 0 for event in session.events) == 1
    built = [event.candidate for event in session.of(ev.BuildEnded)]
    assert len(built) == len(set(built)), "what was built is not built again"
    assert set(built_before) <= set(built)
    assert [event.candidate for event in session.of(ev.StepLost)][:1] == [in_flight]


def test_a_step_that_takes_the_engine_down_twice_ends_the_candidate(session: Session) -> None:
    stop = lambda event: isinstance(event, ev.BuildEnded) and event.candidate > 0  # noqa: E731 - two uses, one line
    session.run(agent("random"), until=stop)
    lost = min(row.number for row in session.history.in_flight() if row.step == "build")
    for pid in (2, 3):
        session.record(ev.EngineStarted(pid=pid, host="here"))
        session.record(ev.StepLost(candidate=lost, step="build"))
    session.run(agent("random"))
    ended = next(event for event in session.of(ev.CandidateEnded) if event.candidate == lost)
    assert isinstance(ended.outcome, Crashed)


def test_a_baseline_that_is_stopped_again_and_again_is_measured_in_the_end(session: Session) -> None:
    session.run(agent("random"), until=lambda event: isinstance(event, ev.Planned))
    for pid in (2, 3, 4, 5):
        session.record(ev.EngineEnded(state="stopped", reason="stop by anna"))
        session.record(ev.EngineStarted(pid=pid, host="here"))
        session.run(agent("random"), until=lambda event: pid < 5 and isinstance(event, ev.StepLost))  # noqa: B023
    assert len(session.of(ev.StepLost)) == 4
    assert session.history.rows[0].outcome == "Measured"
    assert session.history.incumbent is not None


def test_a_crashing_candidate_is_charged_and_the_others_are_measured(tmp_path: Path) -> None:
    session = Session(tmp_path, "ridge,noise=0,drift=0,failures=0,crashed=0.4", candidates=12, screen=False)
    session.run(agent("random"))
    kinds = [type(event.outcome).__name__ for event in session.of(ev.CandidateEnded)]
    assert "Crashed" in kinds
    assert kinds.count("Measured") >= 8
    charged = {event.candidate for event in session.of(ev.EvaluatorReplaced)}
    crashed = {e.candidate for e in session.of(ev.CandidateEnded) if isinstance(e.outcome, Crashed)}
    assert charged == crashed


def test_every_candidate_has_feedback_that_names_it(session: Session) -> None:
    session.run(agent("bandit"))
    for row in session.history.rows:
        feedback = msgspec.json.decode(session.texts.files[row.number, "feedback.json"])
        assert feedback["iteration"] == row.number
        assert feedback["outcome"] == row.outcome
        assert feedback["action_taken"] == row.proposal.text


def test_patience_declares_a_stall_once_and_a_goal_ends_the_run(tmp_path: Path) -> None:
    session = Session(tmp_path, "ridge,noise=0,drift=0,failures=0,flat_us=1000", candidates=60, patience=3, round=2)
    session.run(agent("random"))
    assert len(session.of(ev.Stalled)) == 1
    assert session.of(ev.Stalled)[0].rounds == 3
