"""ASCII, sixteen colours, none at all, a white ground, no mouse: nothing is lost; a frozen screen stands still."""

from __future__ import annotations

import json
import re

import pytest
from textual.pilot import Pilot

from cake_tui.model import event as ev
from cake_tui.tui import format as fmt
from cake_tui.tui.app import CakeApp, load_panes
from cake_tui.tui.bridge import Bridge, Now
from cake_tui.tui.keys import KEYS, own_keys
from cake_tui.tui.palette import STYLES, style
from tests.tui.conftest import app_of
from tests.tui.picture import text_of
from tests.tui.pilot import play, press, settle, text_after
from tests.tui.pty_terminal import PtyTerminal
from tests.tui.sample import Sample


def replaying(sample: Sample, *flags: str, **environment: str) -> PtyTerminal:
    terminal = PtyTerminal("replay", "first", "--sessions", str(sample.folder.parent), *flags, **environment)  # type: ignore[arg-type]
    terminal.wait_for("REPLAY")
    terminal.settle(quiet=0.4)
    return terminal


@pytest.mark.parametrize(
    ("flags", "environment"),
    [(["--ascii"], {}), ([], {"LC_ALL": "", "LANG": "de_DE.ISO-8859-1"})],
    ids=["flag", "latin-1"],
)
def test_ascii_is_all_that_is_sent(finished_sample: Sample, flags: list[str], environment: dict[str, str]) -> None:
    with replaying(finished_sample, *flags, **environment) as terminal:
        assert "@ accepted" in terminal.text()
        terminal.send("?")
        terminal.settle(quiet=0.4)
        assert terminal.received.isascii()


def test_a_locale_of_utf_8_gets_all_symbols(finished_sample: Sample) -> None:
    with replaying(finished_sample, LC_ALL="", LC_CTYPE="", LANG="en_US.utf8") as terminal:
        assert "●" in terminal.text()


def test_no_mouse_leaves_it_to_the_terminal(finished_sample: Sample) -> None:
    with replaying(finished_sample, "--no-mouse") as terminal:
        terminal.send("\x0c")
        terminal.settle(quiet=0.4)
        assert not re.search(rb"\x1b\[\?100[0-9]h", terminal.received.replace(b"\x1b[?1004h", b""))


def test_the_keyboard_protocol_is_never_switched_on(finished_sample: Sample) -> None:
    """Pitfall 5: a lost link leaves it on at the other end, and keys arrive as numbers."""
    with replaying(finished_sample) as terminal:
        assert not re.search(rb"\x1b\[>\d*u", terminal.received)


def test_on_a_white_ground_there_is_no_yellow_and_no_cyan(finished_sample: Sample) -> None:
    with replaying(finished_sample, COLORFGBG="0;15") as terminal:
        assert not re.search(rb"\x1b\[(?:\d+;)*3[36](?:;\d+)*m", terminal.received)
        assert re.search(rb"\x1b\[(?:\d+;)*34(?:;\d+)*m", terminal.received)


def test_colours_are_the_terminals_own_sixteen() -> None:
    for tone in STYLES:
        for light in (False, True):
            color = style(tone, light).color
            assert color is None or (color.number is not None and color.number < 16), tone


def test_every_outcome_has_a_glyph_of_its_own_in_both_alphabets() -> None:
    """Pitfall 15: whoever sees no colours tells the outcomes apart, and so does whoever sees ASCII alone."""
    for alphabet in (0, 1):
        glyphs = [entry[alphabet] for entry in fmt.OUTCOMES.values()]
        assert len(set(glyphs)) == len(glyphs)
    for glyph, plain, word, _ in fmt.OUTCOMES.values():
        assert fmt.ascii_only(glyph) == plain
        assert word


def test_what_people_did_has_a_glyph_in_the_log(sample: Sample) -> None:
    sample.put(ev.RequestTaken(id="m", who="bob", what="mark", body={"note": "look"}))
    assert "▲ mark by bob" in text_after(app_of(sample), ["7", "z"])


def test_no_key_needs_what_terminals_and_their_multiplexers_keep_for_themselves() -> None:
    """Pitfall 30: prefixes of tmux and screen, alt, and chords that only a keyboard protocol can tell apart."""
    keys = [key for entry in KEYS for key in entry.keys.split(",")]
    keys += [binding.key for pane in load_panes() for binding in own_keys(type(pane)).values()]
    assert len(keys) > 40
    for key in keys:
        assert not re.search(r"ctrl\+[ab]$|alt\+|super\+|hyper\+|ctrl\+shift|ctrl\+(enter|tab|\d)", key), key


# -- frozen --------------------------------------------------------------------------------------------


def test_time_stands_still_on_a_frozen_screen(sample: Sample) -> None:
    """Pitfall 23: a screen that stands still says so, and does not take its own silence for the engine's."""
    clock = [sample.now()]
    app = CakeApp(Bridge(sample.folder, now=lambda: clock[0], alive=lambda _: True), you="sam")

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "space")
        before = text_of(app)
        assert "SCREEN FROZEN" in before
        assert "RUNNING" in before
        later = clock[0]
        clock[0] = Now(later.wall, later.mono + 600.0, later.boot)
        app.tick()
        await press(app, pilot, "4", "3")  # panes can be looked through, of that moment
        after = text_of(app)
        assert "STALE" not in after
        assert before.splitlines()[:2] == after.splitlines()[:2]
        await press(app, pilot, "space")
        assert "STALE" in text_of(app)

    play(app, script)


def test_a_frozen_screen_and_a_paused_run_are_two_things(sample: Sample) -> None:
    sample.put(ev.RequestTaken(id="x", who="bob", what="pause"))
    text = text_after(app_of(sample), ["space"])
    assert "PAUSED by bob" in text
    assert "SCREEN FROZEN" in text


# -- undo ----------------------------------------------------------------------------------------------


def test_undo_takes_back_a_move_that_was_just_sent(sample: Sample) -> None:
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "i", *"apply_unroll(4)", "enter", "u")
        assert "undo apply_unroll(4): sent" in text_of(app)
        await settle(app, pilot)

    play(app, script)
    sent = [json.loads(path.read_text()) for path in sorted((sample.folder / "inbox").glob("*.json"))]
    assert [entry["what"] for entry in sent] == ["inject", "undo"]
    assert sent[1]["body"] == {"request": sent[0]["id"]}
