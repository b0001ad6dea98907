"""Keys by their ids: the table, a person's own keys, the footer, the help and the list of commands."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from textual.pilot import Pilot

from cake_tui.tui.app import CakeApp, load_panes
from cake_tui.tui.keymap import Keymap, read_keymap
from cake_tui.tui.keys import KEYS, commands, defaults, footer, here, own_keys
from tests.tui.conftest import app_of
from tests.tui.picture import text_of
from tests.tui.pilot import play, press, text_after
from tests.tui.sample import Sample

# The keys that people were promised, and what each of them does.
PROMISED = {
    "q": "detach", "p": "pause", "space": "freeze", "i": "inject", "a": "actions", "u": "undo", "e": "export",
    "m": "mark", "/": "find", "tab": "pane", "z": "zoom", "enter": "details", "c": "compare", "P": "profile",
    "s": "slow link", "w": "read-only", "?": "help", "Q": "stop", "J": "JSON", "y": "copy",
}  # fmt: skip


def keymap_of(folder: Path, text: str) -> Keymap:
    (folder / "keys.toml").write_text(text, encoding="utf-8")
    return read_keymap(folder / "keys.toml", defaults(load_panes()))


def test_the_promised_keys_are_in_footer_and_commands() -> None:
    assert dict(footer(replay=False, keymap=Keymap())) == PROMISED | {"H": "hide"}
    named = {command.keys.split()[0]: command.name for command in commands(False, load_panes(), Keymap())}
    assert PROMISED.items() <= named.items()
    assert named["4"] == "go to board"
    board = next(pane for pane in load_panes() if pane.pane_name == "board")
    assert footer(replay=False, keymap=Keymap(), pane=board)[5:7] == [("o", "order"), ("f", "filter")]
    assert named["ctrl+l"] == "redraw"


def test_a_wide_footer_shows_all_of_them_and_a_narrow_one_the_main_ones(finished_sample: Sample) -> None:
    wide = text_after(app_of(finished_sample), size=(260, 40)).splitlines()[-1]
    assert all(f"{key} {word}" in wide for key, word in PROMISED.items())
    narrow = text_after(app_of(finished_sample), size=(40, 12)).splitlines()[-1]
    assert narrow.split("  ") == [" p pause", "i inject", "q detach", "? help"]
    assert "…" not in text_after(app_of(finished_sample), size=(80, 24)).splitlines()[-1]


# -- a person's own keys ---------------------------------------------------------------------------------


def test_a_key_is_moved_by_its_id_and_the_old_one_is_dead(finished_sample: Sample, tmp_path: Path) -> None:
    (tmp_path / "keys.toml").write_text(
        'screen.zoom = ["f2", "Z"]\n[board]\norder = "z"\n[go]\nboard = "b"\n', encoding="utf-8"
    )
    app = app_of(finished_sample, settings=tmp_path)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        assert app.mistakes == ()
        await press(app, pilot, "b", "4", "z")
        assert "─ 4 board" not in text_of(app)  # b chose it, 4 did nothing, z ordered it
        assert "newest" in text_of(app)
        assert "best kernel" in text_of(app)
        await press(app, pilot, "f2")
        assert "─ 1 best kernel" not in text_of(app)
        assert "f2 zoom" in text_of(app)
        await press(app, pilot, "question_mark")
        assert "f2 Z" in text_of(app)

    play(app, script)


def test_two_keys_can_be_exchanged(tmp_path: Path) -> None:
    found = keymap_of(tmp_path, 'run.pause = "i"\nrun.inject = "p"\n')
    assert found == Keymap({"run.pause": "i", "run.inject": "p"})


BAD = {
    'run.puase = "x"': 'keys.toml:1: "run.puase": no such binding (did you mean "run.pause"?)',
    'run.pause = "ctrl+shift+x"': 'keys.toml:1: run.pause: no such key "ctrl+shift+x"; allowed: one character',
    "run.pause = 7": "keys.toml:1: run.pause: no such key 7; allowed:",
    'run.pause = "ctrl+c"': "keys.toml:1: run.pause: ctrl+c always leaves the viewer",
    "run.pause = []": "keys.toml:1: run.pause = []: a binding needs a key",
    'run.pause = "z"': "keys.toml:1: run.pause = z: z is screen.zoom; give that another key too",
    'board.order = "n"': "keys.toml:1: board.order = n: n is pane.next_hit",
    'pane.up = "d"': "keys.toml:1: pane.up = d: d is best.diff",
    'run.pause = "ctrl+i"': "keys.toml:1: run.pause: no such key",
    'run.pause = "é"': "keys.toml:1: run.pause: no such key",
    "run.pause = ": "keys.toml:1: cannot read `run.pause =`",
    "\x00": "keys.toml:1: a NUL byte",
}


@pytest.mark.parametrize("text", BAD)
def test_a_bad_entry_is_one_line_that_says_which_and_what_is_allowed(text: str, tmp_path: Path) -> None:
    found = keymap_of(tmp_path, text)
    assert len(found.mistakes) == 1
    assert found.mistakes[0].startswith(BAD[text]) or BAD[text] in found.mistakes[0]
    assert "\n" not in found.mistakes[0]
    assert found.changed == {}


def test_bad_entries_leave_the_others_and_are_told_on_screen(finished_sample: Sample, tmp_path: Path) -> None:
    (tmp_path / "keys.toml").write_text('run.puase = "x"\nrun.pause = "z"\nscreen.help = "f3"\n', encoding="utf-8")
    app = app_of(finished_sample, settings=tmp_path)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        told = text_of(app).splitlines()[-1]
        assert 'keys.toml:1: "run.puase": no such binding' in told
        app.tick()
        await press(app, pilot, "f3", "end")
        assert "run.pause = z: z is screen.zoom" in text_of(app)

    play(app, script)


def test_the_help_names_the_file_and_every_id_at_eighty_columns(finished_sample: Sample, tmp_path: Path) -> None:
    app = app_of(finished_sample, settings=tmp_path)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "question_mark")
        seen = text_of(app)
        for _ in range(12):
            await press(app, pilot, "pagedown")
            seen += text_of(app)
        ids = [key.id for key in here(replay=False)]
        ids += [name for pane in load_panes() for name in (*own_keys(type(pane)), f"go.{pane.pane_name}")]
        assert [name for name in ids if f" {name} " not in seen] == []
        assert "…" not in seen
        assert "keys.toml" in "".join(line.strip("│ ") for line in seen.splitlines())  # a long path wraps
        example = next(line for line in seen.splitlines() if "run.pause = " in line)
        assert tomllib.loads(example.split("such as")[1].split("  with")[0]) == {"run": {"pause": "f2"}}

    play(app, script, (80, 24))


def test_every_id_is_unique_and_belongs_to_its_pane() -> None:
    groups = defaults(load_panes())
    ids = [name for group in groups.values() for name in group]
    assert len(set(ids)) == len(ids)
    assert {key.id for key in KEYS} <= set(groups[""])


# -- commands by name ------------------------------------------------------------------------------------


def test_a_command_is_found_by_words_and_done(finished_sample: Sample) -> None:
    app = app_of(finished_sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "colon", *"order by", "enter")
        assert "━ 4 board" in text_of(app)
        assert "newest" in text_of(app)
        await press(app, pilot, "ctrl+p", *"zoom", "enter")
        assert "best kernel ─" not in text_of(app)
        await press(app, pilot, "ctrl+p", *"[/x] no such", "enter")
        assert "no command of this name" in text_of(app)
        await press(app, pilot, "escape", "3")
        assert "━ 3 history" in text_of(app)

    play(app, script)


def test_the_commands_scroll_with_the_marked_one(finished_sample: Sample) -> None:
    text = text_after(app_of(finished_sample), ["colon", *["pagedown"] * 12], (80, 24))
    assert "log: filter" in text
