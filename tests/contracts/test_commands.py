"""What every command keeps, whichever the registry finds: help with a line, an example, mistakes in one line."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from cake_tui import registry
from cake_tui.cli import main, parser_of
from cake_tui.errors import USAGE

COMMANDS = registry.names("cli")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_overview_has_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out
    for command in COMMANDS:
        assert f"  {command:<10} {registry.docstring('cli', command)}" in listed


@pytest.mark.parametrize("command", COMMANDS)
def test_help_says_what_it_does_and_shows_an_example(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--help"]) == 0
    told = capsys.readouterr().out
    assert registry.docstring("cli", command) in told
    _, _, example = told.partition("example:\n")
    assert example.strip().startswith(f"cake-tui {command}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", COMMANDS)
def test_the_example_can_be_pasted(command: str) -> None:
    parser, found = parser_of(command)
    words = shlex.split(found.example)
    assert words[:2] == ["cake-tui", command]
    parser.read(words[2:])


@pytest.mark.parametrize("command", COMMANDS)
def test_every_argument_is_explained(command: str) -> None:
    parser, _ = parser_of(command)
    for argument in parser._actions:
        assert argument.help, argument.dest


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("wrong", [["--no-such-flag"], ["--no-such-flag=1"], list("abcdefg")], ids=str)
def test_a_wrong_command_line_is_one_line_and_leaves_nothing(
    command: str, wrong: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, *wrong]) == USAGE
    out, told = capsys.readouterr()
    assert not out
    assert len(told.strip().splitlines()) == 1
    assert "Traceback" not in told
    assert not list(tmp_path.iterdir())
