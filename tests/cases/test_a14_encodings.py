"""A14: any locale, any text, any path; files are UTF-8, sources are byte for byte what was written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cake_tui.model import event as ev
from tests.cases.doubling import make_kernel, make_script, settings
from tests.cases.shell import PLAIN, Shell, events, screen, variations
from tests.engine.scripted import folded, until

COMMENT = "// größer als 5 µs – 更快的内核 🙂"
LOCALES = [
    PLAIN,
    {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"},
    {"LC_ALL": "", "LANG": "", "PYTHONUTF8": "0"},
    {"LC_ALL": "no_SUCH.locale", "PYTHONUTF8": "0", "PYTHONIOENCODING": "latin-1"},
]


def utf8_only(folder: Path) -> None:
    """Every text file under a folder is UTF-8."""
    for path in folder.rglob("*"):
        if path.is_file() and "build" not in path.relative_to(folder).parts:
            path.read_bytes().decode("utf-8")


@pytest.mark.cc
@pytest.mark.parametrize("locale", variations(LOCALES))
def test_a_kernel_with_any_text(shell: Shell, locale: dict[str, str]) -> None:
    shell.environment.pop("LC_ALL")
    kernel = make_kernel(shell, f"{COMMENT}\n", COMMENT, title="2·x – 双倍")
    reason = "schneller 🚀 – μs"
    agent = make_script(shell, ("set_MODE(1)", reason, 0))
    words = ("run", "two", "--backend", "cpu", "--name", "a", "--agent", agent, "--headless", *settings())
    shell.apart(*words, **locale)
    session = shell.sessions / "a"
    assert [row.outcome for row in folded(session).rows[:2]] == ["Measured", "Measured"]
    utf8_only(session)
    assert [one.proposal.reason for one in events(session, ev.Planned)][1] == reason
    source = (session / "candidates" / "1" / "kernel.c").read_bytes()
    assert source.count(COMMENT.encode()) == 2
    assert (kernel / "kernel.c").read_bytes().strip() in source or COMMENT.encode() in source
    shell.apart("export", "a", "--output", "best.c", **locale)
    best = folded(session).incumbent
    exported = (shell.folder / "best.c").read_bytes()
    rendered = (session / "candidates" / str(best) / "kernel.c").read_bytes()
    assert rendered.strip() in exported
    for command in (("show", "a"), ("status", "a"), ("tail", "a"), ("list",), ("replay", "a"), ("actions", "two")):
        out, err = shell.apart(*command, **locale)
        assert "codec" not in out + err
    shell.apart("verify", "best.c", **locale)


@pytest.mark.parametrize("locale", variations(LOCALES[:2]))
def test_the_viewer_on_a_terminal_without_unicode(shell: Shell, recorded: Path, locale: dict[str, str]) -> None:
    with screen(shell, "attach", "a", **locale) as terminal:
        until(lambda: b"DONE" in terminal.read(0.1))
        terminal.read(0.5)
        os.write(terminal.master, b"q")
        until(lambda: terminal.read(0.1) and terminal.process.poll() is not None)
    assert terminal.process.returncode == 0
    shown = terminal.shown.decode("ascii", "replace")
    assert "Traceback" not in shown
    assert "codec" not in shown


@pytest.mark.cc
@pytest.mark.parametrize(
    "name", variations(["größe 更快 🙂", "mit Leerzeichen", "a'b\"c$d;e&f", "-rf", "%s{}", "a\nb"])
)
def test_any_working_folder(shell: Shell, name: str) -> None:
    folder = shell.folder / name
    folder.mkdir()
    shell.folder, shell.sessions = folder, folder / "sessions"
    make_kernel(shell, COMMENT + "\n")
    agent = make_script(shell, ("set_MODE(1)", "x", 0))
    words = ("run", "two", "--backend", "cpu", "--name", "a", "--agent", agent, "--headless", *settings())
    shell.apart(*words, **PLAIN)
    assert [row.outcome for row in folded(shell.sessions / "a").rows[:2]] == ["Measured", "Measured"]
    out, _ = shell.apart("export", "a", "--output", "ü.c", **PLAIN)
    assert out.isascii()
    assert (folder / "ü.c").is_file()


def test_a_folder_whose_name_is_no_text(shell: Shell) -> None:
    folder = Path(os.fsdecode(os.fsencode(shell.folder) + b"/b\xff\xfe"))
    folder.mkdir()
    shell.folder, shell.sessions = folder, folder / "sessions"
    session = shell.headless(candidates=2)
    utf8_only(session)
    for line in (session / "journal.jsonl").read_bytes().splitlines():
        json.loads(line)
    for command in (("show", "a"), ("status", "a"), ("list",)):
        shell.apart(*command)
