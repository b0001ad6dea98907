"""Moves: typed by a person, listed for agents, applied to schedules; refusals name the field that forbids them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_tui import kernels, menu
from cake_tui.errors import Ended, UserError
from cake_tui.model.move import Move
from cake_tui.model.outcome import Rejected
from cake_tui.model.schedule import Schedule
from tests.menu.sample import ACTIONS, CPU, GPU, menu_of, problem

SHIPPED = Path(__file__).parents[2] / "actions.toml"
THE_EIGHT = (
    "apply_tiling(tile_size)", "apply_vectorize(vec_width)", "apply_register_block(m, n)", "apply_unroll(factor)",
    "change_block_config(x, y)", "apply_shared_memory_load()", "avoid_bank_conflict(pad)", "revert_last()",
)  # fmt: skip


@pytest.fixture(scope="module")
def shipped() -> menu.Menu:
    return menu.load(SHIPPED, problem(), CPU)


@pytest.fixture
def small(tmp_path: Path) -> menu.Menu:
    return menu_of(ACTIONS, tmp_path)


def refused(found: menu.Menu, schedule: Schedule, *moves: Move) -> Rejected:
    with pytest.raises(Ended) as ended:
        found.apply(schedule, moves)
    assert isinstance(ended.value.outcome, Rejected)
    return ended.value.outcome


def test_the_eight_moves_and_split_k_are_there_on_both_targets(shipped: menu.Menu) -> None:
    gpu = menu.load(SHIPPED, problem("cuda"), GPU)
    for found in (shipped, gpu):
        usable = {action.signature for action in found.actions if action.usable}
        assert {*THE_EIGHT, "split_k(parts)"} <= usable


def test_every_structure_has_a_macro_action_that_leads_to_it(shipped: menu.Menu) -> None:
    reached = set()
    for move in shipped.moves(shipped.first):
        for start in shipped.structures:
            try:
                schedule, level = shipped.apply(shipped.default(start), (move,))
            except Ended:
                continue
            if level == "macro":
                reached.add(schedule.structure)
    assert reached == set(shipped.structures)


def test_every_shipped_micro_value_is_legal_for_some_structure(shipped: menu.Menu) -> None:
    starts = [shipped.default(structure) for structure in shipped.structures]
    for move in shipped.moves(shipped.first):
        ends = []
        for start in starts:
            try:
                ends.append(shipped.apply(start, (move,))[0])
            except Ended as ended:
                law = ended.outcome.diagnostics[0].law if isinstance(ended.outcome, Rejected) else ""
                if law == "no-change":
                    ends.append(start)
        assert ends, f"{move.text} has a meaning nowhere"


def test_moves_are_every_combination_in_the_files_order(small: menu.Menu) -> None:
    texts = [move.text for move in small.moves(Schedule.of("naive"))]
    assert texts == [
        "apply_tiling(16)", "apply_tiling(32)", "apply_tiling(64)",
        "apply_register_block(4, 1)", "apply_register_block(4, 2)", "apply_register_block(8, 1)",
        "apply_register_block(8, 2)", "use_packed_panels()",
    ]  # fmt: skip


def test_what_a_move_is_written_as_parses_back_to_it(shipped: menu.Menu) -> None:
    for move in shipped.moves(shipped.first):
        assert shipped.parse(move.text) == move


SAME = [
    "apply_register_block(8, 2)",
    " apply_register_block ( 8 ,2 ) ",
    "apply_register_block(n=2, m=8)",
    "apply_register_block(8, n = 2)",
]


@pytest.mark.parametrize("text", SAME)
def test_a_move_can_be_written_in_several_ways(text: str, small: menu.Menu) -> None:
    assert small.parse(text) == Move("apply_register_block", (("m", 8), ("n", 2)))


def test_several_moves_are_joined_by_plus(small: menu.Menu) -> None:
    assert [move.text for move in small.parse_moves("use_packed_panels + apply_tiling(32)")] == [
        "use_packed_panels()", "apply_tiling(32)",
    ]  # fmt: skip


WRONG = [
    ("apply_tilling(16)", 'did you mean "apply_tiling"?'),
    ("tile", "known on c: apply_tiling, apply_register_block"),
    ("apply_tiling(17)", 'tile_size: found "17", allowed: 16, 32, 64; nearest: 16'),
    ("apply_tiling(60)", "nearest: 64"),
    ("apply_tiling()", "tile_size is missing"),
    ("apply_tiling", "tile_size is missing"),
    ("apply_tiling(16, 32)", "2 values were given"),
    ("apply_tiling(size=16)", "tile_size in 16, 32, 64"),
    ("apply_tiling(tile_size=16, tile_size=32)", "given twice"),
    ("apply_tiling(true)", "allowed: 16, 32, 64"),
    ("apply_tiling(16.0)", "allowed: 16, 32, 64"),
    ("apply_register_block(n=2, 8)", "values without a name come first"),
    ("apply_tiling(16", "not a move"),
    ("apply_tiling(16))", "not a move"),
    ("", "not a move"),
    ("+", "not a move"),
    ("__import__('os')", "no action"),
    ("apply_tiling(" + "9" * 400 + ")", "allowed: 16, 32, 64"),
    ("x" * 10_000, "at most"),
    ("apply_tiling(\u0661\u0666)", "allowed: 16, 32, 64"),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_a_wrong_move_is_one_line_with_what_is_allowed(text: str, said: str, small: menu.Menu) -> None:
    with pytest.raises(UserError) as found:
        small.parse_moves(text)
    assert said in str(found.value)
    assert len(str(found.value)) < 700
    assert found.value.exit_code == 2


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40) | st.text(alphabet="aply_tilng(),=+1 63\n", max_size=40))
def test_any_text_is_a_move_or_the_users_mistake(shipped: menu.Menu, text: str) -> None:
    try:
        moves = shipped.parse_moves(text)
    except UserError as error:
        message = str(error)
    else:
        message = "one line"
        assert all(shipped.action(move.action) is not None for move in moves)
    assert "\n" not in message


# --- applying -----------------------------------------------------------------------------------------


def test_a_move_rewrites_a_schedule_and_says_its_level(shipped: menu.Menu) -> None:
    start = shipped.default("tiled")
    changed, level = shipped.apply(start, (shipped.parse("apply_tiling(256)"),))
    assert (changed.structure, changed.knob("block_k"), level) == ("tiled", 256, "micro")
    packed, level = shipped.apply(changed, (shipped.parse("use_packed_panels()"),))
    assert (packed.structure, packed.knob("block_k"), level) == ("packed", 256, "macro")
    assert start == shipped.default("tiled")


def test_a_move_without_meaning_names_the_field_that_forbids_it(shipped: menu.Menu) -> None:
    outcome = refused(shipped, shipped.default("naive"), shipped.parse("apply_unroll(4)"))
    assert outcome.diagnostics[0].field == "unroll"
    assert "naive" in outcome.reason


def test_menu_refuses_what_it_does_not_offer(small: menu.Menu) -> None:
    start = Schedule.of("tiled")
    assert "no such action" in refused(small, start, Move("sneak")).reason
    outcome = refused(small, start, Move("apply_tiling", (("tile_size", 48),)))
    assert (outcome.diagnostics[0].field, outcome.diagnostics[0].nearest) == ("tile_size", "32")
    assert "arguments" in refused(small, start, Move("apply_tiling", (("size", 16),))).reason
    assert (
        "disabled" in refused(small.without(["apply_tiling"]), start, Move("apply_tiling", (("tile_size", 16),))).reason
    )
    assert "loop" in refused(small, start, Move("revert_last")).reason


def test_without_disables_by_name_and_changes_nothing_else(small: menu.Menu) -> None:
    less = small.without(["apply_tiling", "never heard of"])
    assert {move.action for move in less.moves(Schedule.of("naive"))} == {"apply_register_block", "use_packed_panels"}
    assert small.without([]) is small
    assert small.action("apply_tiling").enabled  # type: ignore[union-attr]
    with pytest.raises(UserError, match="is disabled"):
        less.parse("apply_tiling(16)")


# --- structures that the file does not name -----------------------------------------------------------


def test_only_a_file_that_asks_for_it_gets_actions_for_structures_it_does_not_name(tmp_path: Path) -> None:
    named = {action.name for action in menu_of(ACTIONS, tmp_path).actions}
    found = menu_of("other_structures = true\n" + ACTIONS, tmp_path)
    added = [action for action in found.actions if action.name not in named]
    assert [action.name for action in added] == [f"use_{name}" for name in found.structures if name != "packed"]
    assert {"use_naive", "use_split_k", "use_tiled"} <= {action.name for action in added}
    for action in added:
        assert action.summary
        (move,) = action.moves()
        start = found.default("packed")
        assert found.apply(start, (move,)) == (found.apply(start, (found.parse(f"{action.name}()"),))[0], "macro")
        assert found.apply(start, (move,))[0].structure == action.name.removeprefix("use_")


def test_an_action_that_is_disabled_or_leads_there_by_a_parameter_counts_as_one(tmp_path: Path) -> None:
    text = """
        other_structures = true
        [[action]]
        name = "go"
        level = "macro"
        summary = "Go there"
        edits = [{ do = "change_structure", structure = "$where" }]
        parameters.c = { where = ["naive", "tiled"] }
        enabled = false
        [[action]]
        name = "use_packed"
        level = "micro"
        summary = "Bears the name already"
        edits = [{ do = "pad", pad = 4 }]
        [[action]]
        name = "cut"
        level = "macro"
        summary = "An edit that bears the structure's name"
        edits = [{ do = "split_k", parts = 2 }]
    """
    found = [action.name for action in menu_of(text, tmp_path).actions]
    assert found[:3] == ["go", "use_packed", "cut"]
    assert not {"use_naive", "use_tiled", "use_split_k", "use_packed"} & set(found[3:])


# --- a user's own kernel file -------------------------------------------------------------------------


def test_the_knobs_of_a_kernel_file_are_its_actions() -> None:
    template = kernels.load("matmul_bias_relu_template", target="c")
    found = menu.load(SHIPPED, template, CPU)
    assert {move.action for move in found.moves(found.first)} == {
        f"set_{knob.name}" for knob in template.template.knobs
    }  # type: ignore[union-attr]
    changed, level = found.apply(found.first, (found.parse("set_BM(96)"),))
    assert (changed.knob("BM"), level) == (96, "micro")
    with pytest.raises(UserError, match="only its knobs can change"):
        found.parse("apply_unroll(4)")
    assert found.reverts(found.parse("revert_last()"))
