"""Mistakes in actions.toml: file, line, full key, what was found, what is allowed, the nearest name; all in one go."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_tui.errors import UserError
from cake_tui.model.schedule import Schedule
from tests.menu.sample import ACTIONS, GPU, menu_of


def mistakes(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(folder)
    with pytest.raises(UserError) as found:
        menu_of(text, folder)
    assert found.value.exit_code == 2
    lines = str(found.value).split("\n")
    assert all(line.startswith("actions.toml:") for line in lines)
    return lines


ONE = [
    # (what is replaced, by what, line, what the message holds)
    ("hints =", "hint =", 16, ('action "apply_register_block": hint: unknown key', 'did you mean "hints"?')),
    ("{ values =", "{ valuse =", 15, ("parameters.c.n.valuse: unknown key; allowed: values", 'did you mean "values"?')),
    ("{ tile_size = [16", "{ valuse = [16", 7, ("parameters.c.valuse: no edit uses $valuse", 'did you mean "values"?')),
    ('"macro"\nsummary = "Pack"', '"marco"\nsummary = "Pack"', 20, ('found "marco", allowed: macro, micro (did',)),
    ('level = "micro"\nsummary = "Work', 'levels = "micro"\nsummary = "Work', 2, ('the key "level" is missing',)),
    ('do = "tiling"', 'do = "tilling"', 6, ("edits[1].do", 'found "tilling"', 'did you mean "tiling"?')),
    ("tile_size = \"$", "tile_sise = \"$", 6, ("edits[1].tile_sise: no argument of this edit", "takes tile_size")),
    ("= \"$n\"", "= \"$k\"", 15, ("no edit uses $n",)),
    ("[16, 32, 64]", "[16, 32, 32]", 7, ("parameters.c.tile_size[3]", "32 stands twice")),
    ("[16, 32, 64]", '[16, "32"]', 7, ("another type",)),
    ("[16, 32, 64]", "[16, 3.5]", 7, ("parameters.c.tile_size[2]: found 3.5",)),
    ("[16, 32, 64]", "[]", 7, ("found []", "at least one")),
    ("[16, 32, 64]", "16", 7, ("found 16", "an array")),
    ("parameters.cuda", "parameters.coda", 8, ("coda: unknown key; allowed: c, cuda", 'did you mean "cuda"?')),
    ("parameters.c = { m", "parameter.c = { m", 15, ('did you mean "parameters"?',)),
    ('targets = ["c"]', 'targets = ["cpu"]', 23, ('found "cpu", allowed: c, cuda',)),
    ('targets = ["c"]', "enabled = 1", 23, ("enabled: found 1, allowed: true, false",)),
    ('hints = ["spills"]', 'hints = ["spill"]', 16, ('did you mean "spills"?',)),
    ('name = "use_packed_panels"', 'name = "apply_tiling"', 19, ("the first is in line 2",)),
    ('name = "use_packed_panels"', 'name = "Use packed"', 19, ('found "Use packed"', "lower-case")),
    ('name = "use_packed_panels"', "name = 3", 19, ("found 3, allowed: a text in quotes",)),
    ('summary = "Pack"', 'summary = ""', 21, ('found ""',)),
    ('edits = [{ do = "change_structure", structure = "packed" }]', "edits = []", 22, ("at least one edit",)),
    ('edits = [{ do = "change_structure", structure = "packed" }]', 'edits = ["tiling"]', 22, ("allowed: a table",)),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "said"), ONE)
def test_one_mistake_is_one_line(
    old: str, new: str, line: int, said: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert old in ACTIONS
    found = mistakes(ACTIONS.replace(old, new, 1), tmp_path, monkeypatch)
    at = [text for text in found if text.startswith(f"actions.toml:{line}: ")]
    assert at, found
    for words in said:
        assert any(words in text for text in at), (words, found)


def test_a_key_in_the_wrong_table_says_where_it_belongs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = mistakes("enabled = true\n" + ACTIONS, tmp_path, monkeypatch)
    assert found == [
        "actions.toml:1: enabled: unknown key; allowed: action, other_structures; it belongs in [[action]]"
    ]
    text = ACTIONS.replace("parameters.c = { tile_size = [16, 32, 64] }", "parameters.enabled = false", 1)
    found = mistakes(text, tmp_path, monkeypatch)
    assert any(line.endswith("it belongs in [[action]]") and ":7: " in line for line in found)


def test_values_outside_a_parameter_say_where_they_belong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = ACTIONS.replace("parameters.cuda = { tile_size = [8, 16] }", "valuse = [16, 32]")
    (found,) = mistakes(text, tmp_path, monkeypatch)
    assert found.startswith('actions.toml:8: action "apply_tiling": valuse: unknown key; allowed: name, level')
    assert 'did you mean "values"?' in found


@pytest.mark.parametrize("header", ["[action]", "[actions]", "[[actions]]", "[[Action]]"])
def test_a_wrong_table_header_is_named(header: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = mistakes(f'{header}\nname = "x"\n', tmp_path, monkeypatch)
    assert "[[action]]" in found[0] or 'did you mean "action"?' in " ".join(found)
    assert found[0].startswith("actions.toml:1: ")


def test_all_mistakes_come_in_one_go_in_the_files_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = ACTIONS.replace("hints", "hint").replace('"micro"', '"mikro"', 1).replace('targets = ["c"]', "tragets = 1")
    found = mistakes(text, tmp_path, monkeypatch)
    assert [int(line.split(":")[1]) for line in found] == [4, 16, 23]


def test_hundreds_of_mistakes_end_in_a_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n".join(f"[[action]]\nname = {number}" for number in range(150))
    found = mistakes(text, tmp_path, monkeypatch)
    assert len(found) == 21
    assert "more mistakes" in found[-1]


@pytest.mark.parametrize("text", ["", "action = 3", "action = []", "action = [1]", "[[action]]"])
def test_a_file_without_actions_is_refused_or_empty(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if text == "action = []":
        monkeypatch.chdir(tmp_path)
        assert menu_of(text, tmp_path).actions == ()
    else:
        assert mistakes(text, tmp_path, monkeypatch)


def test_mistakes_of_the_other_target_are_found_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = mistakes(ACTIONS.replace("tile_size = [8, 16]", "tile_size = []"), tmp_path, monkeypatch)
    assert "parameters.cuda.tile_size" in found[0]


def test_actions_without_meaning_on_a_target_stay_on_the_menu_with_the_reason(tmp_path: Path) -> None:
    menu = menu_of(ACTIONS, tmp_path, GPU)
    refused = {action.name: action.refused for action in menu.actions}
    assert refused["use_packed_panels"] == "it is made for c, not for cuda"
    assert refused["apply_register_block"] == "it is made for c, not for cuda"
    assert refused["apply_tiling"] == ""
    assert {move.action for move in menu.moves(Schedule.of("naive"))} == {"apply_tiling"}


def test_names_with_control_characters_stay_on_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = ACTIONS.replace("{ tile_size = [16, 32, 64] }", '{ tile_size = [16], "a\\nb\\u001b" = [1], "\\u2028" = "" }')
    found = mistakes(text, tmp_path, monkeypatch)
    assert len(found) == 3
    assert "no edit uses $a\\nb\\x1b" in found[0]
