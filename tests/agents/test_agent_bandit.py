"""The bandit's habits: two levels, trials, findings, weights, exploration, explored shapes, the last fifth."""

from __future__ import annotations

import collections
import itertools
import random

import msgspec
import pytest

from cake_tui.agents._record import Record
from cake_tui.agents._situation import Situation, is_explored
from cake_tui.agents.bandit import CLOSE, BanditAgent, make
from cake_tui.backends.simulated.surfaces import SURFACES
from cake_tui.errors import UserError
from cake_tui.model import event as ev
from cake_tui.model.finding import Finding
from cake_tui.model.row import Tally
from cake_tui.model.schedule import Schedule
from tests.agents.surface_session import SurfaceSession


def session(surface: str = "ridge", seed: int = 1, **more: object) -> SurfaceSession:
    return SurfaceSession(SURFACES[surface], BanditAgent(), seed, **more)  # type: ignore[arg-type]


def situation(run: SurfaceSession) -> Situation:
    record = Record()
    record.follow(run.history)
    found = Situation.of(run.history, run.menu, record)
    assert found is not None
    return found


def structure(run: SurfaceSession, number: int) -> str:
    schedule = run.history.rows[number].schedule
    assert schedule is not None
    return schedule.structure


def test_every_structure_is_tried_within_two_rounds() -> None:
    run = session()
    list(run.round())
    list(run.round())
    tried = {row.schedule.structure for row in run.history.rows if row.schedule}
    assert tried == {"naive", "tiled", "packed", "split_k"}


def test_a_structure_on_trial_keeps_a_slot_from_its_own_best() -> None:
    run = session("ridge", seed=3, trial_rounds=3)
    kept: collections.Counter[int] = collections.Counter()
    for _ in range(8):
        before = len(run.history.rows)
        run.history.round += 1  # as the round will see it
        trials = [tried.structure for tried in situation(run).on_trial()]
        bests = {tried.structure: tried.top(3) for tried in situation(run).on_trial()}
        run.history.round -= 1
        list(run.round())
        bases = [row.proposal.base for row in run.history.rows[before:]]
        for name in trials[:1]:
            own = [base for base in bases if structure(run, base) == name]
            assert own, f"{name} is on trial and got no slot"
            assert set(own) <= {row.number for row in bests[name]}
            kept[len(own)] += 1
    assert sum(kept.values()) >= 3


def test_trials_end_after_trial_rounds() -> None:
    run = session("ridge", seed=3, trial_rounds=2)
    list(run.round())
    list(run.round())
    first = {name: tried.first_round for name, tried in situation(run).record.structures.items()}
    for _ in range(6):
        for tried in situation(run).on_trial():
            assert run.history.round - first.get(tried.structure, run.history.round) <= 2
        list(run.round())
    assert situation(run).on_trial() == []


def test_exploration_grows_without_wins_and_falls_after_one() -> None:
    run = session("mirage", seed=2)
    seen = []
    for _ in range(40):
        list(run.round())
        seen.append((run.history.rounds_without_win, situation(run).exploring))
    by_rounds = dict(seen)
    assert len(by_rounds) >= 4
    ordered = [by_rounds[rounds] for rounds in sorted(by_rounds)]
    assert ordered == sorted(ordered)
    assert by_rounds[0] == min(ordered) < max(ordered) <= 0.8
    assert "exploring" in " ".join(row.proposal.reason for row in run.history.rows)


def test_rounds_of_numbers_without_a_win_call_for_a_change_of_structure() -> None:
    run = session("ridge", seed=4, truth=lambda schedule: 1000.0)
    for _ in range(24):
        list(run.round())
    macro = sorted({row.round for row in run.history.rows if row.level == "macro" and row.round > 3})
    assert len(macro) >= 4
    assert all(later - earlier >= 3 for earlier, later in itertools.pairwise(macro))
    reasons = [row.proposal.reason for row in run.history.rows if row.level == "macro" and row.round > 3]
    assert all("rounds of numbers without a win" in reason for reason in reasons)


def test_without_its_macro_level_it_changes_no_structure() -> None:
    run = SurfaceSession(SURFACES["ridge"], make({"argument": "micro"}), 1)
    assert run.run(40) is None
    assert {row.level for row in run.history.rows[1:]} <= {"micro"}


@pytest.mark.parametrize("action", ["apply_unroll", "apply_vectorize"])
def test_findings_raise_the_moves_they_suggest(action: str) -> None:
    finding = Finding("r", "a telling label", "structural", 0.9, actions=(action,))

    def count(findings: tuple[Finding, ...]) -> int:
        rows = []
        for seed in range(3):
            run = session("ridge", seed=seed, findings=findings)
            run.run(32)
            rows += run.history.rows
        named = [row for row in rows if row.proposal.chosen_by == "finding"]
        assert all("a telling label" in row.proposal.reason and "0.90" in row.proposal.reason for row in named)
        assert all(row.proposal.moves[0].action == action for row in named)
        assert bool(named) == bool(findings)
        return sum([move.action for move in row.proposal.moves] == [action] for row in rows)

    assert count((finding,)) >= 2 * count(())


def test_a_finding_is_also_followed_by_the_hints_of_actions() -> None:
    run = session(findings=(Finding("uneven_work", "uneven work", "structural", 0.8),))
    run.run(8)
    suggested = situation(run).suggestions()
    assert set(suggested) == {"change_block_config", "split_k"}


def test_findings_that_bring_nothing_are_followed_less() -> None:
    """Their action's weight decays with each miss, and the share of a finding's slots with it."""
    finding = Finding("r", "misleading", "structural", 0.9, actions=("apply_shared_memory_load", "apply_unroll"))
    run = session("ridge", seed=6, findings=(finding,), truth=lambda schedule: 1000.0)
    run.run(240)
    followed = [row.number for row in run.history.rows if row.proposal.chosen_by == "finding"]
    half = len(run.history.rows) // 2
    early, late = sum(n < half for n in followed), sum(n >= half for n in followed)
    assert early > 2 * late


def test_actions_that_win_are_chosen_more() -> None:
    def share(winner: str) -> float:
        run = session("ridge", seed=8)
        run.run(24)
        tally = Tally(tries=9, wins=6, weight=8.0)
        actions = {action.name: Tally(tries=9, weight=0.1) for action in run.menu.actions}
        run.history.actions = {**actions, winner: tally}
        chosen: collections.Counter[str] = collections.Counter()
        agent = BanditAgent()
        for seed in range(30):
            for proposal in agent.propose(run.history, run.menu, 4, random.Random(seed)):
                if proposal.chosen_by == "weight" and len(proposal.moves) == 1:
                    assert "weight" in proposal.reason
                    chosen[proposal.moves[0].action] += 1
        return chosen[winner] / sum(chosen.values())

    assert share("change_block_config") > 0.7
    assert share("apply_unroll") > 0.7


def test_the_last_fifth_only_refines_near_the_best() -> None:
    run = session("cliffs", seed=2, candidates=100)
    run.run(78)
    while run.history.effective < 80:
        list(run.round())
    before = len(run.history.rows)
    holder = structure(run, run.history.incumbent or 0)
    best = max(row.standing or 0.0 for row in run.history.rows if row.schedule and row.schedule.structure == holder)
    list(run.round())
    late = run.history.rows[before:]
    assert late
    for row in late:
        base = run.history.rows[row.proposal.base]
        assert row.level == "micro"
        assert structure(run, base.number) == holder
        assert (base.standing or 0.0) >= best - CLOSE
        assert "last fifth" in row.proposal.reason


def test_neighbours_of_a_block_shape_that_brought_nothing_are_left_alone() -> None:
    here = Schedule.of("packed", {"threads_x": 4, "threads_y": 4, "unroll": 1})

    def at(x: int, y: int, unroll: int = 1) -> Schedule:
        return here.with_knobs({"threads_x": x, "threads_y": y, "unroll": unroll})

    shapes = {(4.0, 1.0)}  # 16 x 2 brought nothing
    assert is_explored(at(16, 2), here, shapes)
    assert is_explored(at(8, 4), here, shapes)
    assert is_explored(at(32, 1), here, shapes)
    assert not is_explored(at(4, 2), here, shapes)
    assert not is_explored(at(16, 8), here, shapes)
    assert not is_explored(at(4, 4, unroll=8), here, shapes), "the shape in use is not at fault"
    assert not is_explored(Schedule.of("naive"), here, shapes)
    assert not is_explored(at(16, 2), here, set())


def test_shapes_count_as_explored_only_until_the_structure_has_a_new_best() -> None:
    run = session("ridge", seed=9)
    marked = 0
    for _ in range(20):
        list(run.round())
        now = situation(run)
        for tried in now.record.structures.values():
            best = tried.best
            assert best is not None
            fresh = [row for row in tried.measured if row.number > best.number and row.proposal.base == best.number]
            if not fresh:
                assert now.explored(tried) == set()
            marked += len(now.explored(tried))
    assert marked > 0


def test_a_reverted_base_is_where_proposals_start() -> None:
    run = session("ridge", seed=1)
    run.run(30)
    row = next(row for row in run.history.rows if row.number != run.history.incumbent and row.standing is not None)
    run.history.apply(ev.BaseReverted(base=row.number, who="p", reason=""))
    proposals = BanditAgent().propose(run.history, run.menu, 4, random.Random(1))
    assert proposals
    assert {proposal.base for proposal in proposals} == {row.number}


def test_interrupted_and_noisy_schedules_are_tried_again() -> None:
    run = session("ridge", seed=1)
    run.run(12)
    rows = [row for row in run.history.rows[1:] if row.schedule is not None]
    rows[0].outcome, rows[1].verdict = "Interrupted", "noisy"
    rows[0].standing = None
    record = Record()
    record.follow(run.history)
    assert [record.tried(row.schedule) for row in rows[:4] if row.schedule] == [False, False, True, True]


def test_a_candidate_in_flight_is_not_proposed_again() -> None:
    run = session("ridge", seed=1)
    run.run(12)
    last = run.history.rows[-1]
    assert last.schedule is not None
    last.outcome = None
    record = Record()
    record.follow(run.history)
    assert record.tried(last.schedule)


def test_a_record_that_followed_equals_one_read_at_once() -> None:
    run = session("cliffs", seed=4)
    followed = Record()
    for _ in range(15):
        list(run.round())
        followed.follow(run.history)
    fresh = Record()
    fresh.follow(run.history)
    assert followed.structures == fresh.structures
    other = session("cliffs", seed=5)
    other.run(8)
    followed.follow(other.history)
    fresh = Record()
    fresh.follow(other.history)
    assert followed.structures == fresh.structures


def test_structures_whose_first_tries_fail_do_not_end_the_run() -> None:
    surface = msgspec.structs.replace(
        SURFACES["ridge"], pocket=lambda s, n: "Crashed" if s.structure in ("packed", "tiled") else "Measured"
    )
    run = SurfaceSession(surface, BanditAgent(), 1)
    run.run(60)
    assert run.history.effective >= 60
    assert structure(run, run.history.incumbent or 0) == "split_k"


def test_reasons_are_one_short_sentence_with_numbers() -> None:
    run = session("mirage", seed=7)
    run.run(120)
    for row in run.history.rows[1:]:
        assert 10 < len(row.proposal.reason) < 160
        assert any(character.isdigit() for character in row.proposal.reason)
    assert {row.proposal.chosen_by for row in run.history.rows[1:]} >= {"weight", "probe"}


def test_another_argument_is_refused() -> None:
    with pytest.raises(UserError, match="bandit:micro"):
        make({"argument": "macro"})
