"""What every agent keeps, run over all that the registry finds: deterministic, of the menu, fit for 20 candidates."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from cake_tui import registry
from cake_tui.agents import Agent
from cake_tui.backends.simulated.surfaces import SURFACES
from cake_tui.errors import Ended, UserError
from cake_tui.model.move import Proposal
from tests.agents.surface_session import SurfaceSession, packaged_menu

SCRIPT = [
    {"moves": "use_packed_panels()"},
    {"moves": "use_tiled_loops()"},
    {"moves": "split_k(4)"},
    *({"moves": f"apply_register_block({m}, {n})", "base": 1} for m in (6, 8, 12) for n in (1, 2, 3)),
    *({"moves": f"apply_tiling({k}) + apply_unroll({u})", "base": 1} for k in (64, 256, 512) for u in (2, 4, 8)),
]


@pytest.fixture(params=registry.names("agents"))
def options(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, Any]]:
    """The name of an agent with options that make it work by itself."""
    name: str = request.param
    if name != "script":
        return name, {}
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"step": SCRIPT, "per_round": 3}))
    return name, {"argument": str(path)}


def make(options: tuple[str, dict[str, Any]]) -> Agent:
    name, arguments = options
    try:
        agent: Agent = registry.load("agents", name)(arguments)
    except UserError as error:
        pytest.skip(f"{name} needs more than a menu: {error}")
    return agent


def test_runs_twenty_simulated_candidates_of_the_menu(options: tuple[str, dict[str, Any]]) -> None:
    session = SurfaceSession(SURFACES["ridge"], make(options), seed=1)
    session.run(20)
    history = session.history
    assert history.effective >= 20
    assert session.refused_by_menu == 0
    menu = packaged_menu()
    for row in history.rows[1:]:
        assert row.proposal.who == options[0]
        assert row.proposal.reason
        assert "\n" not in row.proposal.reason
        assert all(menu.action(move.action) is not None for move in row.proposal.moves)


def test_the_same_history_and_seed_give_the_same_proposals(options: tuple[str, dict[str, Any]]) -> None:
    """An agent that followed the session and one that meets it for the first time (after a resume) agree."""
    session = SurfaceSession(SURFACES["cliffs"], make(options), seed=2)
    for number in range(2, 8):
        list(session.round())
        asked = [
            list(agent.propose(session.history, session.menu, 4, random.Random(number)))
            for agent in (session.agent, make(options), make(options))
        ]
        assert asked[0] == asked[1] == asked[2]


def test_no_candidate_mixes_moves_of_both_levels(options: tuple[str, dict[str, Any]]) -> None:
    session = SurfaceSession(SURFACES["mirage"], make(options), seed=3)
    session.run(40)
    rows = session.history.rows
    for row in rows[1:]:
        if row.level == "macro":
            assert len(row.proposal.moves) == 1
        elif len(row.proposal.moves) > 1:
            assert row.schedule is not None, row.reason
            base = rows[row.proposal.base].schedule
            assert base is not None
            assert row.schedule.structure == base.structure


def test_disabled_actions_are_not_proposed(options: tuple[str, dict[str, Any]]) -> None:
    if options[0] == "script":
        pytest.skip("a script proposes what it says")
    gone = {"apply_unroll", "apply_register_block", "split_k"}
    session = SurfaceSession(SURFACES["ridge"], make(options), seed=4, menu=packaged_menu().without(gone))
    session.run(40)
    used = {move.action for row in session.history.rows for move in row.proposal.moves}
    assert used
    assert not used & gone


def test_an_action_disabled_mid_run_is_dropped_at_once(options: tuple[str, dict[str, Any]]) -> None:
    if options[0] == "script":
        pytest.skip("a script proposes what it says")
    session = SurfaceSession(SURFACES["ridge"], make(options), seed=4)
    session.run(24)
    before = len(session.history.rows)
    used = {move.action for row in session.history.rows for move in row.proposal.moves}
    session.menu = packaged_menu().without({"change_block_config", "apply_tiling"})
    session.run(48)
    late = {move.action for row in session.history.rows[before:] for move in row.proposal.moves}
    assert len(session.history.rows) > before
    assert used & {"change_block_config", "apply_tiling"}
    assert not late & {"change_block_config", "apply_tiling"}


def test_nothing_is_proposed_twice(options: tuple[str, dict[str, Any]]) -> None:
    session = SurfaceSession(SURFACES["cliffs"], make(options), seed=5)
    session.run(80)
    schedules = [row.schedule for row in session.history.rows]
    assert len(set(schedules)) == len(schedules)


def test_an_empty_menu_gives_no_proposals(options: tuple[str, dict[str, Any]]) -> None:
    if options[0] == "script":
        pytest.skip("a script proposes what it says")
    menu = packaged_menu()
    nothing = menu.without(action.name for action in menu.actions)
    session = SurfaceSession(SURFACES["ridge"], make(options), seed=6, menu=nothing)
    assert list(make(options).propose(session.history, nothing, 4, random.Random(1))) == []


def test_proposals_stay_within_the_number_asked_for(options: tuple[str, dict[str, Any]]) -> None:
    session = SurfaceSession(SURFACES["ridge"], make(options), seed=7)
    for n in (1, 2, 3, 8, 64):
        proposals: list[Proposal] = list(session.agent.propose(session.history, session.menu, n, random.Random(n)))
        assert len(proposals) <= max(n, 3 if options[0] == "script" else n)
        for proposal in proposals:
            base = session.history.rows[proposal.base].schedule
            assert base is not None
            try:
                session.menu.apply(base, proposal.moves)
            except Ended:
                assert options[0] == "script"
        list(session.round())
