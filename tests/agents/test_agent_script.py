"""The script agent: what a file says, round by round; the grid and random agents' own habits."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from cake_tui.agents._space import Space, Step
from cake_tui.agents.grid import GridAgent
from cake_tui.agents.grid import make as make_grid
from cake_tui.agents.random import RandomAgent
from cake_tui.agents.random import make as make_random
from cake_tui.agents.script import make
from cake_tui.backends.simulated.surfaces import SURFACES
from cake_tui.errors import UserError
from cake_tui.model.move import Move, Proposal
from tests.agents.surface_session import SurfaceSession, packaged_menu


def written(folder: Path, text: str, name: str = "script.toml") -> dict[str, Any]:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return {"argument": str(path)}


def asked(session: SurfaceSession, options: dict[str, Any], n: int = 4) -> list[Proposal]:
    return list(make(options).propose(session.history, session.menu, n, random.Random(1)))


def session(options: dict[str, Any]) -> SurfaceSession:
    return SurfaceSession(SURFACES["ridge"], make(options), 1)


def test_one_step_a_round_in_the_order_of_the_file(tmp_path: Path) -> None:
    options = written(
        tmp_path,
        """
        [[step]]
        moves = "use_packed_panels()"
        reason = "panels [/dim] first: 😀"
        [[step]]
        moves = ["apply_register_block(8, 2)", "apply_unroll(4)"]
        [[step]]
        moves = "apply_tiling(512)"
        base = 1
        """,
    )
    run = session(options)
    for _ in range(5):
        list(run.round())
    rows = run.history.rows[1:]
    assert [row.proposal.text for row in rows] == [
        "use_packed_panels()", "apply_register_block(8, 2) + apply_unroll(4)", "apply_tiling(512)",
    ]  # fmt: skip
    assert rows[0].proposal.reason == "panels [/dim] first: 😀"
    assert rows[1].proposal.reason == "step 2 of script.toml"
    assert [row.proposal.base for row in rows] == [0, 1, 1]
    assert {row.proposal.chosen_by for row in rows} == {"script"}
    assert [row.round for row in rows] == [1, 2, 3]


def test_json_and_several_steps_a_round(tmp_path: Path) -> None:
    steps = [{"moves": "use_tiled_loops()"}, {"moves": "split_k(2)"}, {"moves": "use_packed_panels()"}]
    run = session(written(tmp_path, json.dumps({"step": steps, "per_round": 2}), "s.json"))
    list(run.round())
    assert len(run.history.rows) == 3
    list(run.round())
    assert len(run.history.rows) == 4
    plain = session(written(tmp_path, json.dumps(steps), "t.json"))
    list(plain.round())
    assert len(plain.history.rows) == 2


def test_after_a_resume_it_goes_on_with_the_next_round(tmp_path: Path) -> None:
    options = written(tmp_path, "".join(f'[[step]]\nmoves = "apply_tiling({k})"\n' for k in (16, 32, 64)))
    run = session(options)
    list(run.round())
    run.agent = make(options)
    list(run.round())
    assert [row.proposal.text for row in run.history.rows[1:]] == ["apply_tiling(16)", "apply_tiling(32)"]


def test_bases_by_word_and_number(tmp_path: Path) -> None:
    texts = "".join(
        f'[[step]]\nmoves = "apply_unroll(2)"\nbase = {base}\n'
        for base in ('"best"', '"first"', '"last"', "2", "-7", "99")
    )
    run = session(written(tmp_path, "per_round = 6\n" + texts))
    run.agent = RandomAgent()
    run.run(6)
    run.history.round = 1
    bases = [proposal.base for proposal in asked(run, written(tmp_path, "per_round = 6\n" + texts))]
    last = max(row.number for row in run.history.rows if row.standing is not None)
    assert bases == [run.history.incumbent, 0, last, 2, -7, 99]


@pytest.mark.parametrize(
    ("text", "move"),
    [
        ("apply_warp_magic(3, fast)", Move("apply_warp_magic", (("0", 3), ("1", "fast")))),
        ("apply_tiling(48)", Move("apply_tiling", (("0", 48),))),
        ("rm -rf [/] \\u0000", Move("rm -rf [/] \0", ())),
        ("revert_last()", Move("revert_last", ())),
        ("((((", Move("", (("0", "((("),))),
    ],
)
def test_what_is_no_move_is_proposed_all_the_same(tmp_path: Path, text: str, move: Move) -> None:
    run = session(written(tmp_path, f'[[step]]\nmoves = "{text}"\n'))
    assert asked(run, written(tmp_path, f'[[step]]\nmoves = "{text}"\n'))[0].moves == (move,)
    list(run.round())
    assert run.refused_by_menu == 1
    assert run.history.rows[-1].outcome == "Rejected"


def test_delay_and_raise(tmp_path: Path) -> None:
    run = session(written(tmp_path, '[[step]]\nmoves = "split_k(2)"\ndelay = 0.2\n[[step]]\nraise = "model is out"\n'))
    started = time.monotonic()
    list(run.round())
    assert time.monotonic() - started >= 0.2
    with pytest.raises(RuntimeError, match="model is out"):
        list(run.round())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[step]\n", ["script.toml", "line 1"]),
        ('[[step]]\nmove = "x"\n', ["script.toml", "move"]),
        ("[[step]]\nmoves = 3\n", ["script.toml", "moves"]),
        ('[[step]]\nmoves = "a()"\nbase = "worst"\n', ["step 1", '"worst"', "best, last, first"]),
        ('[[step]]\nmoves = "a()"\ndelay = -1\n', ["step 1", "delay", "-1"]),
        ('[[step]]\nmoves = "a()"\ndelay = nan\n', ["step 1", "delay"]),
        ("[[step]]\nreason = 'x'\n", ["step 1", "neither moves nor raise"]),
        ("per_round = 0\n", ["per_round", "0"]),
    ],
)
def test_a_bad_file_is_refused_in_one_line(tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        make(written(tmp_path, text))
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no file given"):
        make({})
    with pytest.raises(UserError, match=r"gone\.toml: cannot be read"):
        make({"argument": str(tmp_path / "gone.toml")})
    with pytest.raises(UserError, match="a folder stands where a file is needed"):
        make({"argument": str(tmp_path)})
    with pytest.raises(UserError, match="not a regular file"):  # which never ends
        make({"argument": "/dev/zero"})
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="not UTF-8"):
        make({"argument": str(tmp_path / "binary.toml")})
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(UserError, match=r"deep\.json"):
        make({"argument": str(tmp_path / "deep.json")})
    assert make(written(tmp_path, "")) is not None


def test_grid_enumerates_a_structures_settings_in_the_menus_order() -> None:
    run = SurfaceSession(SURFACES["ridge"], GridAgent(), 1)
    run.run(40)
    first = run.history.rows[1]
    assert first.schedule is not None
    assert first.schedule.structure == "tiled"
    numbers = [row for row in run.history.rows if row.proposal.base == first.number and row.level == "micro"]
    assert len(numbers) > 20
    # The last action of the menu that the structure always feels changes fastest: the block's shape, y before x.
    shapes = [(row.schedule.knob("threads_x"), row.schedule.knob("threads_y")) for row in numbers if row.schedule]
    assert shapes[:6] == [(1, y) for y in (1, 2, 4, 8, 16, 32)]
    assert all(len(row.proposal.moves) == 1 for row in numbers[:6])


def test_moves_that_need_another_first_are_joined_with_it() -> None:
    """Padding means nothing to the tiled structure until its operands are staged."""
    space = Space()
    space.bind(packaged_menu())
    start = packaged_menu().default("tiled")
    assert start.knob("shared") is False
    assert not any(step.moves[0].action == "avoid_bank_conflict" for step in space.micro(start))
    choices = space.by_action(start)
    joined = space.join(start, [choices["avoid_bank_conflict"][-1], choices["apply_shared_memory_load"][0]])
    assert [move.action for move in joined.moves] == ["apply_shared_memory_load", "avoid_bank_conflict"]
    confirmed = space.confirm(start, joined)
    assert confirmed == joined
    assert confirmed is not None
    assert confirmed.schedule.knob("pad") == 32
    assert space.confirm(start, choices["avoid_bank_conflict"][-1]) is None


def test_steps_laid_down_are_what_the_menu_makes() -> None:
    space, menu, rng = Space(), packaged_menu(), random.Random(7)
    space.bind(menu)
    for structure in ("packed", "tiled", "split_k"):
        schedule = menu.default(structure)
        for _ in range(4):
            asked = [space.confirm(schedule, Step((move,), schedule, "micro")) for move in menu.moves(schedule)]
            assert list(space.micro(schedule)) == [step for step in asked if step is not None]
            schedule = rng.choice(space.micro(schedule)).schedule


def test_random_search_covers_structures_and_settings_evenly() -> None:
    run = SurfaceSession(SURFACES["ridge"], RandomAgent(), 3)
    run.run(240)
    rows = [row for row in run.history.rows if row.schedule and row.level == "micro"]
    share = {
        name: sum(row.schedule.structure == name for row in rows if row.schedule)
        for name in ("tiled", "packed", "split_k")
    }
    assert min(share.values()) > 0.6 * len(rows) / 3
    unroll = [row.schedule.knob("unroll") for row in rows if row.schedule]
    assert min(unroll.count(value) for value in (1, 2, 4, 8)) > 0.12 * len(rows)


@pytest.mark.parametrize("factory", [make_grid, make_random])
def test_agents_without_options_refuse_one(factory: Any) -> None:
    with pytest.raises(UserError, match="allowed: nothing behind the name"):
        factory({"argument": "fast"})
