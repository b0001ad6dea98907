"""A26: a mistake in actions.toml refuses a start before anything is made: file, line, key, found, allowed."""

from __future__ import annotations

import pytest

from cake_tui.model import event as ev
from tests.cases.shell import ROOT, Shell, ended, events, variations
from tests.engine.scripted import until

SHIPPED = (ROOT / "actions.toml").read_text(encoding="utf-8")
ENTRY = """
[[action]]
name = "deep_unroll"
level = "micro"
summary = "Unroll by a lot"
edits = [{ do = "unroll", factor = "$factor" }]
parameters.c = { factor = { values = [16, 32] } }
"""
LINE = SHIPPED.count("\n") + 1  # of the empty line before the entry

# what is wrong: (text, by what, line of the entry or 0, what each line of the message says)
MISTAKES = {
    "a misspelt key": ("{ values =", "{ valuse =", 6, ["parameters.c.factor.valuse", 'did you mean "values"?']),
    "a misspelt field": ("level =", "levle =", 3, ["levle", 'did you mean "level"?']),
    "another table": ("[[action]]", "[[actions]]", 1, ["actions", 'did you mean "action"?']),
    "a table in place of an array": ("[[action]]", "[action]", 1, ["action"]),
    "no quotes": ('level = "micro"', "level = micro", 3, ["level = micro", "quotes"]),
    "no quotes around a name": ('name = "deep_unroll"', "name = nvrtc", 2, ["name = nvrtc", "quotes"]),
    "an upper-case truth value": ("level", "enabled = True\nlevel", 3, ["enabled = True", "lower case"]),
    "a number as a truth value": ("level", "enabled = 1\nlevel", 3, ["enabled", "found 1", "true, false"]),
    "the same action twice": ('"deep_unroll"', '"apply_unroll"', 2, ["apply_unroll", "the first is in line"]),
    "the same key twice": ('level = "micro"', 'level = "micro"\nlevel = "macro"', 4, ["level"]),
    "a key in the wrong table": ("edits = [{", "edits = [{ hints = [], ", 5, ["hints"]),
    "an unknown edit": ('"unroll", f', '"unrol", f', 5, ["unrol", 'did you mean "unroll"?']),
    "an unknown level": ('"micro"', '"mikro"', 3, ['found "mikro"', "allowed: macro, micro"]),
    "a value of another kind": ("[16, 32]", '[16, "32"]', 6, ["parameters.c.factor", "another type"]),
    "no values": ("[16, 32]", "[]", 6, ["parameters.c.factor"]),
    "an open bracket": ("[16, 32]", "[16, 32", 6, ["actions.toml"]),
    "a curly quote": ('"micro"', "“micro”", 3, ["“micro”"]),
}  # fmt: skip


def refused(shell: Shell, text: str, lines: int | None = 1) -> str:
    """A start is refused as usage, in either form, and nothing is made."""
    (shell.folder / "actions.toml").write_text(text, encoding="utf-8")
    before = sorted(shell.folder.rglob("*"))
    err = shell.here("run", "--backend", "simulated", "--headless", "--name", "a", code=2)
    assert shell.apart("run", "--backend", "cpu", "--name", "a", code=2)[1] == err
    assert sorted(shell.folder.rglob("*")) == before
    assert lines is None or err.count("\n") == lines, err
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize("what", MISTAKES)
def test_each_mistake_is_named(shell: Shell, what: str) -> None:
    old, new, line, parts = MISTAKES[what]
    assert old in ENTRY
    err = refused(shell, SHIPPED + ENTRY.replace(old, new, 1), lines=None)
    at = [text for text in err.splitlines() if text.startswith(f"actions.toml:{LINE + line}: ")]
    assert at or what == "an open bracket", err
    for part in parts:
        assert any(part in text for text in at or err.splitlines()), (part, err)


def test_all_mistakes_come_in_one_go(shell: Shell) -> None:
    text = ENTRY.replace("{ values =", "{ valuse =").replace('"micro"', '"mikro"').replace("summary", "sumary")
    err = refused(shell, SHIPPED + text, lines=None)
    for part in ("valuse", "mikro", "sumary"):
        assert part in err
    numbers = [int(line.split(":")[1]) for line in err.splitlines()]
    assert numbers == sorted(numbers)
    assert len(numbers) >= 3


def test_every_command_that_reads_the_file_says_the_same(shell: Shell) -> None:
    text = SHIPPED + ENTRY.replace("{ values =", "{ valuse =")
    err = refused(shell, text, lines=None)
    for words in (("actions",), ("actions", "--json"), ("actions", "--disable", "apply_unroll")):
        assert "valuse" in shell.here(*words, code=2)
    assert "valuse" in err


@pytest.mark.parametrize("what", variations(["a misspelt key", "no quotes", "a value of another kind"]))
def test_a_bad_edit_while_the_run_goes_on_keeps_the_old_menu(shell: Shell, what: str) -> None:
    (shell.folder / "actions.toml").write_text(SHIPPED, encoding="utf-8")
    session = shell.start(device="ridge,series_s=0.02")
    until(lambda: ended(session) >= 1)
    old, new, line, parts = MISTAKES[what]
    (shell.folder / "actions.toml").write_text(SHIPPED + ENTRY.replace(old, new, 1), encoding="utf-8")
    until(lambda: events(session, ev.MenuChanged))
    (told,) = events(session, ev.MenuChanged)
    assert f"actions.toml:{LINE + line}: " in told.refused
    assert parts[0] in told.refused
    count = ended(session)
    until(lambda: ended(session) >= count + 2)
    (shell.folder / "actions.toml").write_text(SHIPPED + ENTRY, encoding="utf-8")
    until(lambda: len(events(session, ev.MenuChanged)) == 2)
    assert "deep_unroll" in " ".join(events(session, ev.MenuChanged)[1].changes)
    shell.here("stop", "a")
