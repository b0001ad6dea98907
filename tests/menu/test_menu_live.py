"""The action space while a run goes on: what changed is said by name, a bad edit leaves the old menu."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cake_tui import menu
from cake_tui.errors import UserError
from cake_tui.menu import editing
from cake_tui.model.history import History
from cake_tui.toml import read_document
from tests.menu.sample import ACTIONS, CPU, menu_of, problem


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "actions.toml"
    file.write_text(ACTIONS, encoding="utf-8")
    return file


def test_nothing_is_said_while_nothing_changes(path: Path) -> None:
    live = menu.LiveMenu(path, problem(), CPU)
    assert live.poll() is None
    path.write_text(ACTIONS + "\n# a comment\n", encoding="utf-8")
    assert live.poll() is None


def test_every_change_is_one_line_by_name(path: Path) -> None:
    live = menu.LiveMenu(path, problem(), CPU)
    text = ACTIONS.replace("[16, 32, 64]", "[16, 128]").replace('name = "use_packed_panels"', 'name = "pack"')
    text = text.replace('hints = ["spills"]', "enabled = false")
    path.write_text(text, encoding="utf-8")
    changed = live.poll()
    assert changed is not None
    assert changed.refused is None
    assert changed.changes == (
        "use_packed_panels: removed",
        "apply_tiling: tile_size: 16, 32, 64 -> 16, 128",
        "apply_register_block: disabled",
        "apply_register_block: hints changed",
        "pack(): added: Pack",
    )
    assert live.menu.action("pack") is not None
    assert live.poll() is None


def test_a_bad_edit_is_refused_once_and_the_old_menu_stays(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    live = menu.LiveMenu(None, problem(), CPU)
    before = live.menu
    path.write_text(ACTIONS.replace("hints", "hint"), encoding="utf-8")
    changed = live.poll()
    assert changed is not None
    assert changed.refused is not None
    assert changed.refused.startswith("actions.toml:16: ")
    assert live.menu is before
    assert live.poll() is None
    path.write_text(ACTIONS.replace("[16, 32, 64]", "[16]"), encoding="utf-8")
    mended = live.poll()
    assert mended is not None
    assert mended.changes == ("apply_tiling: tile_size: 16, 32, 64 -> 16",)


@pytest.mark.parametrize("kind", ["gone", "folder", "binary"])
def test_a_file_that_cannot_be_read_is_refused(kind: str, path: Path) -> None:
    live = menu.LiveMenu(path, problem(), CPU)
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "binary":
        path.write_bytes(os.urandom(64) + b"\0\xff")
    changed = live.poll()
    assert changed is not None
    assert changed.refused
    assert live.menu.actions


def test_what_people_disabled_is_left_out_of_the_current_menu(path: Path) -> None:
    live = menu.LiveMenu(path, problem(), CPU)
    current = live.current(History(disabled_actions=("apply_tiling",)))
    assert not current.action("apply_tiling").enabled  # type: ignore[union-attr]
    assert live.menu.action("apply_tiling").enabled  # type: ignore[union-attr]


def test_a_new_action_is_one_toml_entry(path: Path) -> None:
    live = menu.LiveMenu(path, problem(), CPU)
    with path.open("a", encoding="utf-8") as file:
        file.write(
            '\n[[action]]\nname = "go_wide"\nlevel = "macro"\nsummary = "Packed, wide"\n'
            'edits = [{ do = "change_structure", structure = "packed", thread_n = "$n" },\n'
            '         { do = "unroll", factor = 4 }]\n'
            "parameters.c = { n = [1, 3] }\n"
        )
    changed = live.poll()
    assert changed is not None
    assert changed.changes == ("go_wide(n): added: Packed, wide",)
    schedule, level = live.menu.apply(live.menu.default("naive"), (live.menu.parse("go_wide(3)"),))
    assert level == "macro"
    assert (schedule.structure, schedule.knob("thread_n"), schedule.knob("unroll")) == ("packed", 3, 4)


# --- writing back -------------------------------------------------------------------------------------


def test_disabling_changes_one_line_and_keeps_the_rest(path: Path) -> None:
    path.chmod(0o640)
    editing.set_enabled(path, "apply_tiling", False)
    assert path.read_text(encoding="utf-8") == ACTIONS.replace(
        'name = "apply_tiling"          # by k\n', 'name = "apply_tiling"          # by k\nenabled = false\n'
    )
    editing.set_enabled(path, "apply_tiling", True)
    assert "enabled = true\n" in path.read_text(encoding="utf-8")
    assert path.stat().st_mode & 0o777 == 0o640
    assert [entry.name for entry in path.parent.iterdir()] == ["actions.toml"]


def test_values_are_replaced_in_both_forms(path: Path) -> None:
    editing.set_values(path, "apply_tiling", "c", "tile_size", (16, 512))
    editing.set_values(path, "apply_register_block", "c", "n", (1, 2, 4))
    expected = ACTIONS.replace("[16, 32, 64]", "[16, 512]").replace("{ values = [1, 2]", "{ values = [1, 2, 4]")
    assert path.read_text(encoding="utf-8") == expected


def test_windows_line_ends_and_a_byte_order_mark_survive_an_edit(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbf" + ACTIONS.replace("\n", "\r\n").encode())
    editing.set_enabled(path, "revert_last", False)
    more = 'name = "more"\nlevel = "micro"\nsummary = "s"\nedits = [{ do = "unroll", factor = 2 }]\n'
    editing.add_action(path, more, "more.toml")
    written = path.read_bytes()
    assert b"enabled = false\r\n" in written
    assert written.count(b"\n") == written.count(b"\r\n")
    assert read_document(path).value["action"][-1]["name"] == "more"


BAD_EDITS = [
    (lambda path: editing.set_enabled(path, "aply_tiling", False), 'did you mean "apply_tiling"?'),
    (lambda path: editing.set_values(path, "apply_tiling", "c", "tile", (1,)), "there: tile_size"),
    (lambda path: editing.set_values(path, "apply_tiling", "c", "tile_size", ()), "at least one"),
    (lambda path: editing.set_values(path, "apply_tiling", "c", "tile_size", (1, 1)), "stands twice"),
    (lambda path: editing.add_action(path, 'name = "x"', "x.toml"), "is missing"),
    (lambda path: editing.add_action(path, "name = x", "x.toml"), "x.toml:1: "),
]


@pytest.mark.parametrize(("edit", "said"), BAD_EDITS)
def test_an_edit_with_a_mistake_changes_nothing(edit, said: str, path: Path) -> None:
    with pytest.raises(UserError) as found:
        edit(path)
    assert said in str(found.value)
    assert path.read_text(encoding="utf-8") == ACTIONS
    assert [entry.name for entry in path.parent.iterdir()] == ["actions.toml"]


WRONG = {  # the line of each mistake, counted by hand
    'name = "x"\nlevel = "micro"\nhint = []\nsummary = "s"\nedits = [{ do = "unrol" }]\n': (3, 5),
    '\r\n\r\n# mine\r\n[[action]]\r\nname = "apply_tiling"\r\nlevel = "mikro"\r\nsummary = "s"\r\nedits = []\r\n': (
        5, 6, 8,
    ),
    '\n[[action]]\n# no name\nlevel = "micro"\nsummary = "s\u2028t"\nedits = [{ do = "unroll", factor = 2 }]\n\n'
    '[[action]]\nname = "y"\nlevel = "micro"\nsummary = "s"\nedits = []\n': (2, 12),
    'name = "z"\n\nlevel = micro\n': (3,),
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_mistakes_in_an_added_text_name_its_own_file_and_lines(text: str, path: Path) -> None:
    with pytest.raises(UserError) as found:
        editing.add_action(path, text, "mine.toml")
    said = str(found.value).splitlines()
    assert [line.split(": ")[0] for line in said] == [f"mine.toml:{line}" for line in WRONG[text]], said
    if "apply_tiling" in text:
        assert said[0].endswith(f"the first is in line 2 of {path}")


def test_the_packaged_file_is_copied_before_it_is_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    packaged = menu.find()
    before = packaged.read_text(encoding="utf-8")
    written = editing.set_enabled(packaged, "apply_unroll", False)
    assert written == Path("actions.toml")
    assert menu.find() == written
    assert packaged.read_text(encoding="utf-8") == before
    assert not menu.load(None, problem(), CPU).action("apply_unroll").enabled  # type: ignore[union-attr]


def test_diff_of_equal_menus_is_empty(tmp_path: Path) -> None:
    assert menu.diff(menu_of(ACTIONS, tmp_path), menu_of(ACTIONS, tmp_path)) == ()
