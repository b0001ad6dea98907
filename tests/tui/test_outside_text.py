"""Text of compilers, models and people is shown literally everywhere, and meaning needs neither colour nor Unicode."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from textual.pilot import Pilot

from cake_tui.model import event as ev
from cake_tui.model.measure import Stale
from cake_tui.model.move import Move, Proposal
from cake_tui.model.outcome import BuildFailed
from cake_tui.tui.app import CakeApp
from tests.tui.conftest import app_of
from tests.tui.picture import text_of
from tests.tui.pilot import play, press, settle, text_after
from tests.tui.sample import Sample

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
    for words in ("RUNNING", "@ accepted", ". slower", "baseline", "best #", "S9 x"):
        assert words in text, words
