"""What people ask of a run from the screen: pause, inject, undo, mark, export; and why something cannot act."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from textual.pilot import Pilot

from cake_tui import ir
from cake_tui.model import event as ev
from cake_tui.tui.app import CakeApp
from cake_tui.tui.keymap import Keymap
from cake_tui.tui.keys import KEYS, footer
from cake_tui.tui.replay import ReplayBridge
from tests.tui.conftest import app_of
from tests.tui.picture import text_of
from tests.tui.pilot import play, press, settle, text_after
from tests.tui.sample import DEVICE, PROBLEM, Sample


def requests(sample: Sample) -> list[dict[str, object]]:
    return [json.loads(path.read_text()) for path in sorted((sample.folder / "inbox").glob("*.json"))]


def test_inject_refuses_with_a_reason_and_sends_a_legal_move(sample: Sample) -> None:
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "i")
        await press(app, pilot, *"apply_unr")
        await press(app, pilot, "tab")
        assert "apply_unroll(" in text_of(app)
        assert "factor" in text_of(app)
        await press(app, pilot, *"3)", "enter")
        assert "refused" in text_of(app)
        assert "allowed: " in text_of(app)
        assert not requests(sample)
        await press(app, pilot, "backspace", "backspace", *"4)")
        assert "legal" in text_of(app)
        await press(app, pilot, "enter")
        assert "inject a move" not in text_of(app)
        (sent,) = requests(sample)
        assert (sent["what"], sent["who"]) == ("inject", "sam")
        assert sent["body"] == {"text": "apply_unroll(4)", "reason": ""}
        assert "… inject apply_unroll(4)  sent" in text_of(app)
        move = {"action": "apply_unroll", "arguments": [["factor", 4]]}
        sample.put(ev.RequestTaken(id=str(sent["id"]), who="sam", what="inject", body={"moves": [move]}))
        app.tick()
        await settle(app, pilot)
        assert "inject apply_unroll(4): taken" in text_of(app)
        assert "apply_unroll(4)  by sam" in text_of(app)

    play(app, script)


def test_a_refusal_by_the_engine_is_shown_with_its_reason(sample: Sample) -> None:
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "p")
        (sent,) = requests(sample)
        sample.put(ev.RequestRefused(id=str(sent["id"]), who="sam", what="pause", reason="it is paused [/already]"))
        app.tick()
        await settle(app, pilot)
        assert "pause: refused: it is paused [/already]" in text_of(app)

    play(app, script)


def test_a_move_is_judged_again_when_the_best_changes_meanwhile(sample: Sample) -> None:
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "i")
        await press(app, pilot, *"apply_unroll(4)")
        assert f"from #{sample.incumbent}," in text_of(app)
        before = sample.incumbent
        while sample.incumbent == before:
            sample.run(1)
        app.tick()
        await settle(app, pilot)
        assert f"from #{sample.incumbent}," in text_of(app)

    play(app, script)


def test_export_writes_the_best_and_says_where(sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "export: " in text_after(app_of(sample), ["e"])  # nothing to export from: a reason, no file
    assert not list(tmp_path.glob("*.c"))
    schedule = sample.schedule_of_best()
    program = ir.build(PROBLEM, schedule, "c", DEVICE, runtime_sizes=False)
    lowered = ir.lower(program, "c", DEVICE.arch, PROBLEM.shapes)
    (sample.folder / "best" / "lowered.json").write_bytes(msgspec.json.encode(lowered))
    for name in (f"first-{sample.incumbent}.c", f"first-{sample.incumbent}-2.c"):  # nothing is overwritten
        said = text_after(app_of(sample), ["e"], size=(200, 60))
        assert f"exported #{sample.incumbent}" in said
        assert name in said
        assert lowered.source in (tmp_path / name).read_text()


def test_undo_takes_back_ones_own_request_and_a_mark_is_sent(sample: Sample) -> None:
    move = {"action": "apply_unroll", "arguments": [["factor", 4]]}
    sample.put(ev.RequestTaken(id="mine", who="sam", what="inject", body={"moves": [move]}))
    sample.put(ev.RequestTaken(id="other", who="bob", what="inject", body={"moves": [move]}))
    text_after(app_of(sample), ["u", "m", *"look", "enter"])
    sent = [(entry["what"], entry["body"]) for entry in requests(sample)]
    assert sent == [("undo", {"request": "mine"}), ("mark", {"note": "look"})]


def test_p_resumes_a_paused_run(sample: Sample) -> None:
    sample.put(ev.RequestTaken(id="x", who="sam", what="pause"))
    text = text_after(app_of(sample), ["p"])
    assert [entry["what"] for entry in requests(sample)] == ["resume"]
    assert "PAUSED by you" in text


@pytest.mark.parametrize(
    ("options", "alive", "words"),
    [({"read_only": True}, True, "read-only"), ({}, False, "cake-tui resume first")],
)
def test_what_cannot_act_says_why_and_sends_nothing(
    sample: Sample, options: dict[str, bool], alive: bool, words: str
) -> None:
    assert words in text_after(app_of(sample, alive=alive, **options), ["p"])
    assert requests(sample) == []


def test_a_frozen_screen_says_so_and_stands_still(sample: Sample) -> None:
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "space")
        before = text_of(app)
        assert "SCREEN FROZEN" in before
        sample.run(4)
        app.tick()
        await settle(app, pilot)
        assert text_of(app) == before
        await press(app, pilot, "space")
        assert "SCREEN FROZEN" not in text_of(app)
        assert f"#{sample.number - 1} " in text_of(app)

    play(app, script)


def test_a_replay_steps_and_steers_nothing(finished_sample: Sample) -> None:
    app = CakeApp(ReplayBridge(finished_sample.folder, now=finished_sample.now), you="sam")

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        assert "REPLAY" in text_of(app)
        rows = len(app.bridge.fold.history.rows)
        await press(app, pilot, *["left_square_bracket"] * 10)
        assert len(app.bridge.fold.history.rows) < rows
        await press(app, pilot, "p")
        assert footer(replay=True, keymap=Keymap())[:2] == [("[", "back"), ("]", "forward")]

    play(app, script)
    assert requests(finished_sample) == []


def test_help_lists_every_key_and_scrolls_at_eighty_columns(finished_sample: Sample) -> None:
    app = app_of(finished_sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "question_mark")
        seen = text_of(app)
        for _ in range(6):
            await press(app, pilot, "pagedown")
            seen += text_of(app)
        for key in KEYS:
            if key.where != "replay":
                assert key.id in seen
                assert key.help[:20] in seen, key.id
        assert "wrong answer" in seen

    play(app, script, (80, 24))


@pytest.mark.parametrize(
    "keys",
    [("i", *"apply_unroll(4)"), ("m", *"look"), ("Q", *"first"), ("a",)],
    ids=["inject", "mark", "stop", "actions"],
)
def test_a_dialog_stays_with_the_reason_where_nothing_could_be_sent(sample: Sample, keys: tuple[str, ...]) -> None:
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, *keys)
        dialog = app.screen
        app.bridge.engine_alive = False  # it ends while somebody types
        await press(app, pilot, "enter")
        assert app.screen is dialog
        assert "no engine runs this session" in text_of(app)
        assert requests(sample) == []

    play(app, script)
