"""Every text of every event, reading and file that a viewer shows may be anything: a fuzz over all of them at once."""

from __future__ import annotations

import json
import typing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect
from textual.pilot import Pilot

from cake_tui.model import event as ev
from cake_tui.model.feedback import Feedback
from cake_tui.model.move import Move
from cake_tui.model.outcome import Outcome
from cake_tui.tui.app import CakeApp
from cake_tui.tui.screens.dialog import Dialog
from tests.tui.conftest import app_of
from tests.tui.picture import text_of
from tests.tui.pilot import play, press
from tests.tui.sample import Sample

CONTROLS = "\x1b[2J\x1b]52;c;AAAA\x07\x1bP1$r\x9b31m\x08\x7f\x00"
LINES = "a\nb\r\nc\x0bd\x0ce\u2028f\x85g\th"
COMBINING = "Z" + "\u0301\u0316\u0489" * 40 + "\u200d\ufe0f\u20e3"
WIDE = "日本語\U0001f469\u200d\U0001f469\u200d\U0001f467\U0001f1e9\U0001f1ea\uff21\U0001d54f\ufffe\U0010ffff"
RIGHT_TO_LEFT = "\u202eabc\u2067אבג\u2069 العربية\u200f"
MARKUP = "[/red][@click=app.exit()][bold]\\[ {0} %s ${HOME}"
HOSTILE = {
    "controls, lines, widths": CONTROLS + LINES + WIDE + RIGHT_TO_LEFT + COMBINING,
    "markup of 10 kB": MARKUP * 250,
    "empty": "",
}
# How their beginnings look on the screen: nothing is dropped in silence.
SHOWN = {
    CONTROLS[:4]: "␛[2J␛]52;c;AAAA␇␛P1$r<009b>31m␈␡␀a␊b␍␊c␋d␌e<2028>f<0085>g    h日本語👩<200d>👩",
    MARKUP[:4]: MARKUP,
}
# Numbers that say which candidate is meant; the others may be anything.
PLAIN = {inspect.BoolType: True, inspect.IntType: 1, inspect.FloatType: 1.5, inspect.NoneType: None}
NUMBERED = ("candidate", "candidates", "base", "against", "of", "incumbent")


def filled(kind: Any, text: str, number: int) -> Any:
    """A value of a type, as JSON has it, in which every field is there and every text is the hostile one."""
    if type(kind) in PLAIN:
        return PLAIN[type(kind)]
    match kind:
        case inspect.StructType():
            found = {field.encode_name: filled(field.type, text, number) for field in kind.fields}
            for name in NUMBERED:
                if isinstance(found.get(name), int):
                    found[name] = number
            return {**found, kind.tag_field: kind.tag} if kind.tag_field else found
        case inspect.StrType():
            return text
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.UnionType():
            return filled(next(one for one in kind.types if not isinstance(one, inspect.NoneType)), text, number)
        case inspect.DictType():
            return {text: filled(kind.value_type, text, number)}
        case inspect.VarTupleType() | inspect.ListType():
            return [filled(kind.item_type, text, number)]
        case inspect.TupleType():
            return [filled(one, text, number) for one in kind.item_types]
        case inspect.AnyType():
            return {text: [text, {text: text}]}
    raise AssertionError(f"a type that the fuzz does not know: {kind}")


def events_about(number: int, text: str) -> list[ev.Event]:
    """An event of every kind, ends of every kind among them, all of them full of the text."""
    found = []
    for kind in typing.get_args(ev.AnyEvent):
        if kind in (ev.SessionCreated, ev.EngineEnded):
            continue
        value = filled(inspect.type_info(kind), text, number)
        if kind is ev.RequestTaken:
            moves = filled(inspect.type_info(tuple[Move, ...]), text, number)
            for what in ("inject", "pause", "resume", "mark", "disable", text):
                body = {"moves": moves, "reason": text, "text": text, "note": text, "actions": [text]}
                found.append(msgspec.convert({**value, "id": what + text, "what": what, "body": body}, kind))
        else:
            found.append(msgspec.convert(value, kind))
    for at, outcome in enumerate(typing.get_args(Outcome), 1):
        value = filled(inspect.type_info(ev.CandidateEnded), text, number + at)
        value["outcome"] = filled(inspect.type_info(outcome), text, number)
        found.append(msgspec.convert(value, ev.CandidateEnded))
    return found


def hostile(folder: Path, text: str) -> Sample:
    """A session in which every text is the hostile one, from events of every kind."""
    sample = Sample(folder, name="s", goal=None)
    sample.run(6)
    sample.put(*events_about(sample.number, text))
    feedback = filled(inspect.type_info(Feedback), text, sample.number)
    for number in range(sample.number, sample.number + 12):
        sample._write(number, "feedback.json", json.dumps({**feedback, text: {text: [text, {text: text}]}}))
        for name in ("kernel.c", "program.cake", "build.log", "prompt.txt", "reply.txt"):
            sample._write(number, name, text.encode("utf-8", "replace").decode() + "\n" + ascii(text))
    (sample.folder / "best" / "kernel.c").write_bytes(text.encode("utf-8", "surrogatepass") * 3)
    sample.beat(2)
    with (sample.folder / "telemetry.jsonl").open("a") as file:
        clock = {"mono": sample.clock, "reasons": [text], "health": [text], "error": text, "rate": None}
        file.write(
            json.dumps({"t": text, "mono": sample.clock, "boot": "", "missing": {"rate": text}, "clock": clock}) + "\n"
        )
    return sample


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_whatever_any_field_holds_the_screen_stays_whole(text: str, tmp_path: Path) -> None:
    """Drawn in every pane and dialog: rows keep their width (asserted where they are read), nothing unprintable."""
    app = app_of(hostile(tmp_path / "s", text), settings=tmp_path)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        seen = []
        for keys in (
            (), ("1", "z", "d", "d", "r"), ("2",), ("4",), ("5",), ("6",), ("7", "f"), ("3",),
            ("enter",), ("d", "end"), ("escape", "J"), ("escape", "c", "c"), ("escape", "a"),
            ("escape", "question_mark"), ("escape", "colon"), ("escape", "i"), ("escape", "Q"),
            ("escape", "4", "slash", "x", "enter", "y"),
        ):  # fmt: skip
            await press(app, pilot, *keys)
            seen.append(text_of(app))
            if isinstance(app.screen, Dialog):  # what is below the fold too
                seen += ["".join(piece for piece, _ in line) for line in app.screen.lines(80)]
        await pilot.resize_terminal(38, 11)
        await press(app, pilot, "2")
        seen.append(text_of(app))
        assert SHOWN.get(text[:4], "") in "\n".join(seen)
        for char in "".join(seen):
            assert char == "\n" or char.isprintable(), hex(ord(char))

    play(app, script, (300, 60))


def test_the_fuzz_fills_every_field_and_every_viewer_part_of_them_is_reached(tmp_path: Path) -> None:
    """The fuzz itself: the events fold, and what stands in their fields comes to the screen."""
    app = app_of(hostile(tmp_path / "s", "[b]x"))
    app.bridge.poll()
    fold = app.bridge.fold
    assert fold.damaged == 0
    row = fold.history.rows[-1]
    assert row.proposal.reason == row.proposal.who == "[b]x"
    assert {len(part) > 0 for part in (fold.history.queue, fold.history.peers, fold.trail.guards)} == {True}
