"""What panes show, what keys do, and that outside text is shown literally in every one of them."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from textual.binding import Binding
from textual.pilot import Pilot

from cake_tui import ir, registry
from cake_tui.model import event as ev
from cake_tui.model.measure import Stale
from cake_tui.model.move import Move, Proposal
from cake_tui.model.outcome import BuildFailed
from cake_tui.tui.app import CakeApp, load_panes
from cake_tui.tui.bridge import ReplayBridge
from cake_tui.tui.keys import KEYS, footer
from cake_tui.tui.pane import Pane
from tests.tui.conftest import app_of
from tests.tui.picture import text_of
from tests.tui.pilot import play, press, settle, text_after
from tests.tui.sample import DEVICE, PROBLEM, Sample

PANES = registry.names("tui/panes")
SIZES = ((120, 40), (80, 24), (40, 12), (200, 60))


# -- every pane, found by the registry -----------------------------------------------------------------


@pytest.mark.parametrize("name", PANES)
def test_a_pane_says_what_it_is_and_has_keys_of_its_own(name: str) -> None:
    kind = registry.load("tui/panes", name)
    assert issubclass(kind, Pane)
    assert kind.title
    assert kind.help
    own = [binding.id or "" for binding in _own(name)]
    assert all(name_of.startswith(f"{name}.") for name_of in own), own


@pytest.mark.parametrize("full", [False, True], ids=["empty", "full"])
@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_every_pane_draws_an_empty_and_a_full_view(
    size: tuple[int, int], full: bool, finished_sample: Sample, tmp_path: Path
) -> None:
    app = app_of(finished_sample if full else Sample(tmp_path / "empty"))

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        for pane in load_panes():
            await press(app, pilot, str(pane.number), "z")
            assert f"━ {pane.number} {pane.title} " in text_of(app)
            await press(app, pilot, "z")
            assert f"━ {pane.number} {pane.title} " in text_of(app)

    play(app, script, size)


def test_no_key_is_bound_twice() -> None:
    everywhere = [key.strip() for entry in KEYS for key in entry.keys.split(",")]
    assert len(set(everywhere)) == len(everywhere)
    assert len({entry.id for entry in KEYS}) == len(KEYS)
    scrolling = [key for binding in Pane.BINDINGS for key in binding.key.split(",")]
    digits = [str(number) for number in range(1, 10)]
    for name in PANES:
        own = [key for binding in _own(name) for key in binding.key.split(",")]
        taken = [*everywhere, *scrolling, *digits, *own]
        assert len(set(taken)) == len(taken), (name, sorted(key for key in taken if taken.count(key) > 1))


def _own(name: str) -> list[Binding]:
    return list(registry.load("tui/panes", name).__dict__.get("BINDINGS", ()))


# -- headline, best, history, board, feedback ----------------------------------------------------------


def test_the_headline_answers_the_first_questions(finished_sample: Sample) -> None:
    text = text_after(app_of(finished_sample))
    top = text.splitlines()[:3]
    assert "RUNNING" in top[0]
    assert "of 600 candidates" in top[0]
    assert "of 24 h" in top[0]
    assert "last event" in top[0]
    assert "since a win" in top[0]
    assert f"best #{finished_sample.incumbent} {finished_sample.best_us / 1000:.3f} ms" in top[1]
    # 180 ms against the best; numpy's 1.75 ms against the best
    assert f"{180_000 / finished_sample.best_us:.0f}× baseline" in top[1]
    assert f"{1_750 / finished_sample.best_us:.2f}× numpy" in top[1]
    assert f"{2 * 512**3 / finished_sample.best_us * 1e-3:.0f} GFLOP/s" in top[1]


def test_eighty_columns_show_best_status_and_actions(finished_sample: Sample) -> None:
    text = text_after(app_of(finished_sample), size=(80, 24))
    for words in ("RUNNING", f"best #{finished_sample.incumbent}", "actions", "weight", "best kernel"):
        assert words in text


def test_forty_columns_show_one_pane_and_a_tab_bar(finished_sample: Sample) -> None:
    text = text_after(app_of(finished_sample), ["4"], size=(40, 12))
    assert "RUNNING" in text
    assert "4 board" in text
    assert "accepted" not in text or "●" in text
    assert " 1  2  3 " in text


def test_the_best_pane_shows_the_file_in_best_with_its_hash(finished_sample: Sample) -> None:
    import hashlib

    data = (finished_sample.folder / "best" / "kernel.c").read_bytes()
    text = text_after(app_of(finished_sample), ["1", "z"])
    assert hashlib.sha256(data).hexdigest()[:12] in text
    assert "typedef float v16 __attribute__((vector_size(64), aligned(4)));" in text


def test_the_best_pane_shows_the_diff_and_the_program(finished_sample: Sample) -> None:
    diff = text_after(app_of(finished_sample), ["1", "z", "d"])
    assert f"+++ #{finished_sample.incumbent}" in diff
    program = text_after(app_of(finished_sample), ["1", "z", "r"])
    assert "program matmul_bias_relu ir 1 target c" in program


def test_a_long_source_is_shown_plain(sample: Sample) -> None:
    from cake_tui.tui.highlight import coloured

    text = "int x;\n" * 6000
    assert {tone for line in coloured(text, "c") for _, tone in line} == {""}
    (sample.folder / "best" / "kernel.c").write_text(text)
    assert "6000 int x;" in text_after(app_of(sample), ["1", "z", "G"])


def test_highlighting_changes_no_character(finished_sample: Sample) -> None:
    from cake_tui.tui.highlight import coloured, plain

    text = finished_sample.kernel(
        3, finished_sample.seq and __import__("cake_tui.model.schedule", fromlist=["x"]).Schedule("naive")
    )
    joined = ["".join(piece for piece, _ in line) for line in coloured(text, "c")]
    assert joined == ["".join(piece for piece, _ in line) for line in plain(text)]
    assert len({tone for line in coloured(text, "c") for _, tone in line}) >= 5


def test_the_board_chooses_what_the_feedback_shows(finished_sample: Sample) -> None:
    app = app_of(finished_sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "4", "down", "down")
        chosen = app.chosen
        assert chosen is not None
        assert f"#{chosen} · chosen" in text_of(app)
        await press(app, pilot, "escape")
        assert app.chosen is None
        assert "· latest" in text_of(app)

    play(app, script)


def test_selection_and_place_survive_new_candidates(sample: Sample) -> None:
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "4", *["down"] * 6)
        chosen = app.chosen
        sample.run(8)
        app.tick()
        await settle(app, pilot)
        assert app.chosen == chosen
        assert f"#{chosen} · chosen" in text_of(app)

    play(app, script)


def test_the_board_can_be_ordered_and_filtered(finished_sample: Sample) -> None:
    newest = text_after(app_of(finished_sample), ["4", "z", "o"])
    assert "newest" in newest
    failed = text_after(app_of(finished_sample), ["4", "z", "f", "f"])
    assert "only failed" in failed
    assert "accepted" not in failed.split("only failed")[1]


def test_the_exact_json_is_shown_as_it_is(finished_sample: Sample) -> None:
    text = text_after(app_of(finished_sample), ["J"])
    number = len(json.loads((finished_sample.folder / "candidates" / "150" / "feedback.json").read_text()))
    assert number > 5
    assert '"iteration": 150,' in text
    assert '"compile_status": "ok",' in text


def test_without_a_feedback_file_the_journal_speaks(sample: Sample) -> None:
    for path in (sample.folder / "candidates").glob("*/feedback.json"):
        path.write_text("{ torn")
    assert "from the journal" in text_after(app_of(sample), ["2", "z"])


def test_history_marks_people_lines_and_failures(finished_sample: Sample) -> None:
    text = text_after(app_of(finished_sample), ["3", "z"])
    for words in ("▲ anna: inject", "numpy", "goal 1.1 peer", "baseline", "failed", "GFLOP/s · linear", "●", "✗"):
        assert words in text
    assert "log" in text_after(app_of(finished_sample), ["3", "z", "l"])
    assert "ms┤" in text_after(app_of(finished_sample), ["3", "z", "t"])


def test_clocks_say_since_when_a_reading_is_missing_and_what_a_code_did(finished_sample: Sample) -> None:
    text = text_after(app_of(finished_sample), ["5", "z"])
    assert "n/a since 09:" in text
    assert "no sensor in this machine" in text
    assert "S4 ×" in text
    assert "series dropped and run again" in text
    assert "add/ns" in text


def test_the_log_can_be_narrowed_and_scrolled(finished_sample: Sample) -> None:
    people = text_after(app_of(finished_sample), ["7", "z", "f", "f", "f"])
    assert "anna: inject apply_register_block(8, 2)" in people
    assert "measured" not in people
    assert "back" in text_after(app_of(finished_sample), ["7", "z", "up", "pageup"])


# -- requests ------------------------------------------------------------------------------------------


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
        assert [key.id for key in footer(replay=True)][:2] == ["replay.back", "replay.forward"]

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
                assert key.help[:40] in seen, key.id
        assert "wrong answer" in seen

    play(app, script, (80, 24))


# -- outside text --------------------------------------------------------------------------------------

HOSTILE = {
    "markup": "k.cu(12): error: mm<[/BM]> [/dim] [/",
    "links": "[@click=app.exit()]here[/] a[i][/*pad*/] [red]x \\[",
    "controls": "\x1b[2J\x1b]0;title\x07\x9b31m nul\x00 cr\rlf\nx",
    "wide": "日本語 e\u0301 👩\u200d👩\u200d👧 🇩🇪 \u202eabc",
    "long": "x" * 10_000,
}


def hostile_session(folder: Path, text: str) -> Sample:
    """Every field that a person, a compiler or a model may fill holds the text."""
    sample = Sample(folder, goal=text[:40])
    sample.run(4)
    number = sample.number
    proposal = Proposal(sample.incumbent, (Move(text, (("m", text),)),), text, "llm", text)
    outcome = BuildFailed(step="build", reason=text, log=text, log_bytes=len(text))
    sample.put(
        ev.CandidateEnded(candidate=number, round=9, outcome=outcome, proposal=proposal),
        ev.Noticed(level="error", text=text),
        ev.RequestTaken(id="h1", who=text, what="mark", body={"note": text}),
        ev.RequestTaken(
            id="h2", who=text, what="inject", body={"moves": [{"action": text, "arguments": []}], "reason": text}
        ),
        ev.RequestRefused(id="h3", who=text, what=text, reason=text),
        ev.MenuChanged(changes=(text,), refused=text),
        ev.SettingsChanged(changes=((text, text, text),), settings={"candidates": 600, text: text}),
        ev.GuardFired(candidate=1, stale=Stale(text, text, text)),
        ev.PeerTimed(peer=text, avg_us=1000.0, ratio=1.5, against=0, version=text),
        ev.EvaluatorReplaced(candidate=1, reason=text, seconds=1.0),
        ev.ProposalDropped(proposal=proposal, reason=text),
        ev.PausedByGuard(guard=text, reason=text),
    )
    finding = {
        "label": text,
        "confidence": 0.5,
        "kind": text,
        "evidence": {text: text},
        "advice": text,
        "actions": [text],
    }
    feedback = {"action_taken": text, text: {text: [text, {text: text}]}, "findings": [finding, text], "perf": text}
    sample._write(number, "feedback.json", json.dumps(feedback))
    (sample.folder / "best" / "kernel.c").write_text(text, encoding="utf-8", errors="surrogatepass")
    sample.beat(3)
    reading = {"t": text, "mono": sample.clock, "missing": {"rate": text}, "clock": {"rate": None, "reasons": [text]}}
    with (sample.folder / "telemetry.jsonl").open("a") as file:
        file.write(json.dumps(reading) + "\n")
    return sample


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_shown_literally_everywhere(text: str, tmp_path: Path) -> None:
    sample = hostile_session(tmp_path / "s", text)
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        seen = text_of(app)
        for keys in (
            ("4", "z", "z"),
            ("2", "z", "c", "z"),
            ("7", "z", "f", "f", "f", "f", "z"),
            ("J",),
            ("escape", "i"),
            ("escape", "question_mark"),
        ):
            await press(app, pilot, *keys)
            seen += text_of(app)
        await press(app, pilot, "escape")
        app.notify(text)
        app.say(text)
        await settle(app, pilot)
        seen += text_of(app)
        assert "\x1b" not in seen
        assert "\r" not in seen
        piece = text[:12]
        if piece.isascii() and piece.isprintable():
            assert piece in seen
        for width, height in ((80, 24), (1, 1)):
            await pilot.resize_terminal(width, height)
            await settle(app, pilot)

    play(app, script)
    assert msgspec.json.encode(text) in (sample.folder / "journal.jsonl").read_bytes()


def test_meaning_survives_without_colour_and_in_ascii(finished_sample: Sample) -> None:
    text = text_after(app_of(finished_sample, ascii=True))
    assert text.isascii()
    for words in ("RUNNING", "@ accepted", ". slower", "baseline", "best #", "S4 x"):
        assert words in text, words
