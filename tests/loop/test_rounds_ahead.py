"""The next round is proposed and built while this one is timed, where compilers leave that alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cake_tui import loop, registry
from cake_tui.menu import Menu
from cake_tui.model import event as ev
from cake_tui.model.goal import Goal
from cake_tui.model.history import History
from cake_tui.model.jobs import TimePairs
from cake_tui.model.move import Proposal
from cake_tui.steps.context import Context
from tests.loop.driving import Session
from tests.loop.test_device_lost import Flaky

QUIET = "ridge,noise=0,drift=0,failures=0"
SLOW_COMPILER = f"{QUIET},compile_s=0.02"  # so that there is something to hide
# The second round starts from candidate 0, as the first does: it is proposed before that one is known.
ROUNDS = (
    ("use_packed_panels()",), ("use_tiled_loops()",), ("apply_register_block(8, 2)",), ("apply_unroll(4)",),
    ("apply_vectorize(8)",), ("apply_unroll(2)",),
)  # fmt: skip


class Listed:
    """Proposes from a list, round by round; then nothing."""

    def __init__(self, rounds: Sequence[Sequence[str]] = ROUNDS) -> None:
        self.rounds = rounds

    def propose(self, history: History, menu: Menu, n: int, rng: random.Random) -> Sequence[Proposal]:
        texts = self.rounds[history.round - 1] if history.round <= len(self.rounds) else ()
        base = history.incumbent if history.base_override is None else history.base_override
        return [
            Proposal(base or 0, (menu.parse(text),) if text else (), "listed", "script", "test")
            for text in texts
        ]  # fmt: skip


def drive(session: Session, agent: Any, after: Callable[[Context, ev.Event], object], goal: Goal | None = None) -> str:
    """Run until `after`, called behind each event, says true, or to the end; return why it was done."""
    with session.context(agent) as ctx:
        ctx.goal = goal
        story = loop.run(ctx)
        while True:
            try:
                event = session.record(next(story))
            except StopIteration as done:
                return str(done.value)
            if after(ctx, event):
                story.close()
                return ""


def rounds_done(count: int) -> Callable[[Context, ev.Event], bool]:
    return lambda ctx, event: isinstance(event, ev.RoundEnded) and event.round == count


def at(session: Session, kind: type[ev.Event], **values: Any) -> int:
    """The place of the one event of a kind with these values."""
    found = [
        index
        for index, event in enumerate(session.events)
        if isinstance(event, kind) and all(getattr(event, name) == value for name, value in values.items())
    ]
    assert len(found) == 1, (kind, values, found)
    return found[0]


def inject(session: Session, text: str, request: str = "one") -> None:
    move = session.menu.current(session.history).parse(text)
    session.record(
        ev.RequestTaken(id=request, who="me", what="inject", body={"moves": msgspec.to_builtins((move,)), "text": text})
    )


def whole(session: Session) -> None:
    """Every candidate was planned at most once, ended once and not while another had its source."""
    ends = [event.candidate for event in session.of(ev.CandidateEnded)]
    assert sorted(ends) == list(range(len(session.history.rows)))
    planned = [event.candidate for event in session.of(ev.Planned)]
    assert len(planned) == len(set(planned))
    timed = [row.source_sha256 for row in session.history.rows if row.outcome == "Measured"]
    assert len(timed) == len(set(timed))
    assert not session.history.flying
    assert [event.round for event in session.of(ev.RoundEnded)] == sorted(
        {event.round for event in session.of(ev.RoundEnded)}
    )


# -- order and what is hidden -------------------------------------------------------------------------------


def test_a_round_is_planned_before_the_one_before_is_timed_and_says_what_it_knew(tmp_path: Path) -> None:
    session = Session(tmp_path, SLOW_COMPILER, candidates=24, screen=False, trial_rounds=0)
    drive(session, Listed(), rounds_done(4))
    assert [event.knew_round for event in session.of(ev.RoundBegan)] == [None, 0, 1, 2, 3]
    for number in (1, 2, 3):
        mine = next(row.number for row in session.history.rows if row.round == number)
        after = next(row.number for row in session.history.rows if row.round == number + 1)
        assert at(session, ev.BuildEnded, candidate=mine) < at(session, ev.RoundBegan, round=number + 1)
        assert at(session, ev.Planned, candidate=after) < at(session, ev.CheckEnded, candidate=mine)
        assert at(session, ev.RoundEnded, round=number) < at(session, ev.BuildEnded, candidate=after)
    assert session.history.rows[2].proposal.base == 0  # 1 was on its way when this was proposed
    assert session.history.rows[2].against == 1  # and it is timed against who holds now


def test_what_is_begun_ahead_is_compiled_while_the_round_before_is_timed(tmp_path: Path) -> None:
    session = Session(tmp_path, f"{SLOW_COMPILER},check_s=0.5", candidates=24, screen=False, trial_rounds=0)
    seen: dict[int, int] = {}

    def after(ctx: Context, event: ev.Event) -> bool:
        if isinstance(event, ev.RoundEnded):
            seen[event.round] = len(list((tmp_path / "builds").rglob("*.json")))
        return isinstance(event, ev.RoundEnded) and event.round == 2

    drive(session, Listed(), after)
    assert seen == {1: 2 * 3, 2: 2 * 4}  # both builds of candidates 0 to 2, then of the next one


@pytest.mark.parametrize(("surface", "settings"), [(QUIET, {}), (SLOW_COMPILER, {"ahead": False})])
def test_nothing_is_begun_ahead_where_there_is_nothing_to_hide_or_it_is_switched_off(
    tmp_path: Path, surface: str, settings: dict[str, Any]
) -> None:
    session = Session(tmp_path, surface, candidates=24, screen=False, trial_rounds=0, **settings)
    drive(session, Listed(), rounds_done(3))
    assert [event.knew_round for event in session.of(ev.RoundBegan)] == [None, None, None]
    for number in (1, 2):
        assert at(session, ev.RoundEnded, round=number) < at(session, ev.RoundBegan, round=number + 1)


def test_while_structures_have_their_first_trials_each_round_knows_all_before(tmp_path: Path) -> None:
    session = Session(tmp_path, SLOW_COMPILER, candidates=24, screen=False, trial_rounds=2)
    drive(session, Listed(), rounds_done(4))
    assert [event.knew_round for event in session.of(ev.RoundBegan)] == [None, None, None, 2, 3]


def test_the_setting_acts_while_the_run_goes_on(tmp_path: Path) -> None:
    session = Session(tmp_path, SLOW_COMPILER, candidates=24, screen=False, trial_rounds=0)

    def after(ctx: Context, event: ev.Event) -> bool:
        if isinstance(event, ev.RoundEnded) and event.round == 1:
            settings = {**session.history.settings, "ahead": False}
            session.record(ev.SettingsChanged(changes=(("ahead", "true", "false"),), settings=settings))
        return isinstance(event, ev.RoundEnded) and event.round == 4

    drive(session, Listed(), after)
    assert [event.knew_round for event in session.of(ev.RoundBegan)] == [None, 0, None, None]


def test_two_runs_with_one_seed_give_one_journal(tmp_path: Path) -> None:
    agent = registry.load("agents", "bandit")
    journals = []
    for name in ("one", "two"):
        session = Session(tmp_path / name, "cliffs,compile_s=0.01", candidates=14, trial_rounds=1)
        drive(session, agent({}), lambda ctx, event: False)
        journals.append([_timeless(msgspec.to_builtins(event)) for event in session.events])
        assert session.history.effective == 14
        assert any(event.knew_round is not None for event in session.of(ev.RoundBegan))
    assert journals[0] == journals[1]


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _timeless(one) for name, one in value.items() if name not in ("seconds", "mono", "cached")}
    return [_timeless(one) for one in value] if isinstance(value, list | tuple) else value


# -- what people ask for ------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", [ev.RoundBegan, ev.CheckEnded, ev.GateEnded])
def test_an_injected_move_is_first_in_the_next_round_from_who_holds_then(
    tmp_path: Path, moment: type[ev.Event]
) -> None:
    session = Session(tmp_path, SLOW_COMPILER, candidates=24, screen=False, trial_rounds=0)
    asked: list[int] = []

    def after(ctx: Context, event: ev.Event) -> bool:
        if isinstance(event, moment) and not asked and session.history.round == 2:
            inject(session, "apply_unroll(8)")
            asked.append(session.history.finished_round)
        return bool(asked) and isinstance(event, ev.RoundEnded) and event.round == asked[0] + 2

    drive(session, Listed(), after)
    [row] = [row for row in session.history.rows if row.proposal.request == "one"]
    assert row.outcome is not None
    assert row.round == asked[0] + 2  # the one after that under way
    took = at(session, ev.Planned, candidate=row.number)
    holder = [win.candidate for win in session.history.wins]
    crowned = [c for c in holder if at(session, ev.CandidateEnded, candidate=c) < took]
    assert row.proposal.base == crowned[-1]
    others = [other.number for other in session.history.rows if other.round == row.round and other is not row]
    for other in others:
        assert at(session, ev.CheckEnded, candidate=row.number) < at(session, ev.CheckEnded, candidate=other)


def test_a_revert_asked_for_during_a_round_is_the_base_of_the_round_proposed_next_and_of_no_other(
    tmp_path: Path,
) -> None:
    session = Session(tmp_path, SLOW_COMPILER, candidates=24, screen=False, trial_rounds=0)

    def after(ctx: Context, event: ev.Event) -> bool:
        if isinstance(event, ev.CheckEnded) and session.history.finished_round == 1 and "r" not in _asked(session):
            inject(session, "revert_last()", "r")
        return isinstance(event, ev.RoundEnded) and event.round == 5

    drive(session, Listed(), after)
    [reverted] = session.of(ev.BaseReverted)
    place = session.events.index(reverted)
    begun = [event.round for event in session.events[:place] if isinstance(event, ev.RoundBegan)]
    bases = {row.round: row.proposal.base for row in session.history.rows if row.number}
    assert begun[-1] == 3  # it was on its way already
    assert bases[4] == reverted.base
    assert bases[5] != reverted.base


def _asked(session: Session) -> set[str]:
    return set(session.history.request_ids)


# -- the budget ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("candidates", [1, 5, 6])
def test_the_budget_is_met_exactly(tmp_path: Path, candidates: int) -> None:
    session = Session(tmp_path, SLOW_COMPILER, candidates=candidates, round=2, trial_rounds=0)
    why = drive(session, registry.load("agents", "random")({}), lambda ctx, event: False)
    assert why == f"{candidates} of {candidates} candidates"
    assert session.history.effective == candidates
    assert not session.history.counts.get("Interrupted")
    whole(session)


def test_an_injected_move_takes_a_place_in_the_budget_from_what_was_begun(tmp_path: Path) -> None:
    session = Session(tmp_path, SLOW_COMPILER, candidates=3, screen=False, trial_rounds=0)
    rounds = (("use_packed_panels()",), ("use_tiled_loops()", "apply_unroll(2)"))

    def after(ctx: Context, event: ev.Event) -> bool:
        if isinstance(event, ev.Coarse) and event.candidate == 1:
            inject(session, "apply_vectorize(8)")
        return False

    assert drive(session, Listed(rounds), after) == "3 of 3 candidates"
    injected = next(row for row in session.history.rows if row.proposal.request == "one")
    assert injected.outcome == "Measured"
    assert session.history.counts["Interrupted"] == 1
    [gone] = [row for row in session.history.rows if row.outcome == "Interrupted"]
    assert "injected move" in gone.reason
    assert gone.round == injected.round
    whole(session)


def test_what_was_begun_when_the_goal_is_reached_is_left(tmp_path: Path) -> None:
    session = Session(tmp_path, SLOW_COMPILER, candidates=24, screen=False, trial_rounds=0)
    why = drive(session, Listed(), lambda ctx, event: False, Goal(10.0, "baseline"))
    assert why.startswith("goal reached")
    left = [row for row in session.history.rows if row.outcome == "Interrupted"]
    assert [row.round for row in left] == [session.history.finished_round + 1]
    assert all("goal reached" in row.reason for row in left)
    whole(session)


# -- the same source, crashes -------------------------------------------------------------------------------


def test_a_source_on_its_way_is_not_evaluated_in_the_next_round_as_well(tmp_path: Path) -> None:
    session = Session(tmp_path, SLOW_COMPILER, candidates=24, screen=False, trial_rounds=0)
    drive(session, Listed((("use_packed_panels()",), ("use_packed_panels()", "use_tiled_loops()"))), rounds_done(2))
    again = session.history.rows[2]
    assert (again.outcome, again.repeats) == ("Repeated", 1)
    assert at(session, ev.CandidateEnded, candidate=2) < at(session, ev.CandidateEnded, candidate=1)
    whole(session)


def test_a_device_lost_with_two_rounds_under_way_loses_neither(tmp_path: Path) -> None:
    session = Session(tmp_path, SLOW_COMPILER, candidates=7, round=2, screen=False, trial_rounds=0)
    with session.context(registry.load("agents", "random")({})) as ctx:
        ctx.executor = Flaky(ctx.executor, TimePairs, after=12)
        flying: list[int] = []
        for event in loop.run(ctx):
            if isinstance(session.record(event), ev.PausedByGuard):
                flying = list(session.history.flying)
    assert len({session.history.rows[number].round for number in flying}) == 2
    assert {session.history.rows[number].outcome for number in flying} == {"Measured"}
    assert session.history.effective == 7
    whole(session)


@pytest.mark.parametrize("cut", range(10, 50, 9))
def test_an_engine_that_dies_anywhere_is_gone_on_with(tmp_path: Path, cut: int) -> None:
    session = Session(tmp_path, SLOW_COMPILER, candidates=7, round=2, screen=False, trial_rounds=0)
    agent = registry.load("agents", "random")
    drive(session, agent({}), lambda ctx, event: len(session.events) == cut)
    flying = list(session.history.flying)
    drive(session, agent({}), lambda ctx, event: False)
    assert session.history.effective == 7
    assert all(session.history.rows[number].outcome != "Interrupted" for number in flying)
    whole(session)
    if flying:
        [lost] = session.of(ev.StepLost)
        assert session.history.rows[lost.candidate].round == min(session.history.rows[n].round for n in flying)
