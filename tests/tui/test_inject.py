"""The inject dialog: legal values, answers before a move is sent, completion by tab and enter, the queue before it."""

from __future__ import annotations

import json

import pytest
from textual import events
from textual.pilot import Pilot

from cake_tui.model import event as ev
from cake_tui.model.history import History
from cake_tui.tui.app import CakeApp
from cake_tui.tui.bridge import Bridge
from cake_tui.tui.moves import Moves
from cake_tui.tui.screens.inject import Inject
from tests.tui.conftest import app_of
from tests.tui.picture import text_of
from tests.tui.pilot import play, press, settle
from tests.tui.sample import Sample


def history_of(sample: Sample) -> History:
    bridge = Bridge(sample.folder)
    bridge.poll()
    return bridge.fold.history


def test_values_are_offered_as_whole_moves_with_the_answer_to_each(sample: Sample) -> None:
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "i", *"apply_unroll(")
        seen = text_of(app)
        assert "apply_unroll(factor)  factor 1, 2, 4, 8" in seen
        rows = [line for line in seen.splitlines() if "  apply_unroll(" in line and "factor)" not in line]
        assert len(rows) == 4
        assert all("legal" in row or "refused" in row for row in rows)
        assert any("legal  expects" in row or "legal  abstains" in row for row in rows)

    play(app, script)


def test_enter_completes_what_is_not_whole_and_sends_what_is(sample: Sample) -> None:
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "i", *"unrol", "enter")
        assert "apply_unroll(" in text_of(app)
        await press(app, pilot, "down", "down")
        offered = [line for line in text_of(app).splitlines() if "  apply_unroll(" in line and "factor)" not in line]
        await press(app, pilot, "enter")
        assert "from #" in text_of(app)
        assert not list((sample.folder / "inbox").glob("*.json"))
        await press(app, pilot, "enter")
        assert "inject a move" not in text_of(app)
        (path,) = (sample.folder / "inbox").glob("*.json")
        assert json.loads(path.read_text())["body"]["text"] in offered[2]

    play(app, script)


def test_tab_takes_in_what_was_typed_right_before_it(sample: Sample) -> None:
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "i")
        dialog = app.screen
        assert isinstance(dialog, Inject)
        for key in "apply_til":
            dialog.input.post_message(events.Key(key, key))  # in the field's queue, not read yet
        dialog.action_complete()
        await settle(app, pilot)
        assert dialog.input.value == "apply_tiling("

    play(app, script)


def test_the_best_expected_comes_first_and_what_is_refused_last(sample: Sample) -> None:
    moves = Moves(history_of(sample))
    for text in moves.whole("apply_register_block("):
        moves.judge(text)
    judged = [moves.judge(text) for text, _ in moves.completions("apply_register_block(")]
    expected = [one.expected for one in judged if one.expected is not None]
    assert expected == sorted(expected)
    assert len(expected) >= 3
    legal = [one.legal for one in judged]
    assert legal == sorted(legal, reverse=True)
    assert not all(legal)


def test_what_was_chosen_stays_chosen_while_the_others_are_judged(sample: Sample) -> None:
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "i", *"apply_register_block(")
        dialog = app.screen
        assert isinstance(dialog, Inject)
        assert dialog.moves is not None
        dialog.moves._judged.clear()
        dialog._pick(1)
        chosen = dialog._chosen
        dialog.settle()
        assert [text for text, _ in dialog.moves.completions(dialog.input.value)][dialog.picked] == chosen
        await press(app, pilot, "tab")
        assert dialog.input.value == chosen

    play(app, script)


@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=str)
def test_the_example_in_the_empty_field_is_legal_now(size: tuple[int, int], sample: Sample) -> None:
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "i")
        dialog = app.screen
        assert isinstance(dialog, Inject)
        example = dialog.input.placeholder
        assert example in text_of(app)
        assert Moves(history_of(sample)).judge(example).legal

    play(app, script, size)


@pytest.mark.parametrize(
    ("asked", "offered"),
    [
        ("apply_register_block(12, 3)", {"apply_register_block(8, 3)", "apply_register_block(12, 2)"}),
        ("apply_tiling(48)", None),
        ("split_k(2) + apply_register_block(14, 4)", None),
    ],
)
def test_a_refused_move_names_the_nearest_that_are_on_offer_and_legal(
    sample: Sample, asked: str, offered: set[str] | None
) -> None:
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "i", *asked)
        dialog = app.screen
        assert isinstance(dialog, Inject)
        assert dialog.moves is not None
        named = dialog.moves.instead(asked)
        assert len(named) == 2
        assert all(Moves(history_of(sample)).judge(text).legal for text in named)
        assert offered is None or set(named) == offered
        seen = " ".join(text_of(app).split())
        assert f"{named[0]} or {named[1]}" in seen
        assert "nearest legal" not in seen

    play(app, script)


def test_the_queue_before_it_is_shown_and_moves_on(sample: Sample) -> None:
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "i")
        assert "waiting before it  1. apply_register_block(8, 2) by anna" in text_of(app)
        move = {"action": "split_k", "arguments": [["parts", 2]]}
        sample.put(ev.RequestTaken(id="q", who="bob", what="inject", body={"moves": [move]}))
        app.tick()
        await settle(app, pilot)
        assert "2. split_k(2) by bob" in text_of(app)
        sample.put(*(ev.RequestUndone(id=name + "u", who="bob", undoes=name) for name in ("q", "request-1")))
        app.tick()
        await settle(app, pilot)
        assert "queue empty: it comes first in the next round" in text_of(app)

    play(app, script)


@pytest.mark.parametrize("size", [(40, 12), (1, 1)], ids=str)
def test_it_is_usable_in_small_terminals(finished_sample: Sample, size: tuple[int, int]) -> None:
    app = app_of(finished_sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "i", *"apply_unroll(4)")
        if size[0] >= 40:
            assert "legal" in text_of(app) or "refused" in text_of(app)
        await press(app, pilot, "escape")

    play(app, script, size)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("apply_register_block(", 28),
        ("apply_register_block(8", 4),
        ("apply_register_block(1", 12),  # 1, 12, 14
        ("apply_register_block(8, ", 4),
        ("apply_register_block(8, 2", 1),
        ("apply_register_block(m=8, n=2", 1),
        ("apply_register_block(9, ", 28),  # no such value: all are offered
        ("apply_register_block(8, 2)", 28),
        ("split_k(2) + apply_unroll(", 4),
        ("apply_tiling(", 7),
        ("nothing(", 0),
        ("revert_last(", 1),
    ],
)
def test_what_is_offered_fits_what_is_typed(finished_sample: Sample, typed: str, offered: int) -> None:
    found = Moves(history_of(finished_sample)).whole(typed)
    assert len(found) == offered
    lead = typed.rpartition("+")[0]
    assert all(text.startswith(lead) and text.endswith(")") for text in found)


def test_every_offered_move_is_understood(finished_sample: Sample) -> None:
    """What is offered parses: a refusal comes from an edit or a law, never from the menu's own values."""
    moves = Moves(history_of(finished_sample))
    for action in (action for action in moves.menu.actions if action.usable):
        for text in moves.whole(f"{action.name}("):
            assert moves.menu.parse_moves(text)[0].action == action.name


@pytest.mark.parametrize(
    "text", ["[/x](", "a" * 5000, "apply_unroll(((((", ")", "+ + +", "apply_unroll(4)+", "日本(", "\x1b[31m("]
)
def test_odd_texts_are_judged_not_raised(finished_sample: Sample, text: str) -> None:
    moves = Moves(history_of(finished_sample))
    moves.completions(text)
    assert not moves.judge(text).legal
