"""A01, other damage: lines lost in the middle of the record, other things in a file's place, records of nothing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cases.shell import Shell, log_of
from tests.engine.scripted import folded

READERS = (
    ("status", "a"), ("show", "a"), ("show", "a", "--json"), ("tail", "a"), ("tail", "a", "--json"), ("replay", "a"),
    ("replay", "a", "--json"), ("attach", "a"), ("export", "a"), ("inject", "a", "apply_unroll(2)"),
)  # fmt: skip
NOTHING = {
    "empty": b"",
    "zeros, as after a power loss": b"\0" * 4096,
    "half of its first line": b'{"kind":"SessionCreated","name":"a","v":1,"se',
    "another file": b"#!/bin/sh\necho [/dim]\n" * 50,
    "no text": bytes(range(256)) * 20,
}


@pytest.mark.parametrize("what", NOTHING)
def test_a_record_of_nothing_is_named_by_whoever_reads_it(shell: Shell, recorded: Path, what: str) -> None:
    (recorded / "journal.jsonl").write_bytes(NOTHING[what])
    for words in READERS:
        err = shell.here(*words, code=5)
        assert err.count("\n") == 1, (words, err)
        assert "journal.jsonl holds no session" in err
        assert "cake-tui run" in err
    assert "damaged" in shell.here("list")
    assert (recorded / "journal.jsonl").read_bytes() == NOTHING[what]


def test_a_record_of_a_newer_version_says_so(shell: Shell, recorded: Path) -> None:
    path = recorded / "journal.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"v":1', b'"v":99'))
    for words in READERS:
        assert "written by a newer cake-tui" in shell.here(*words, code=5)


def test_a_record_comes_out_as_it_is(shell: Shell, recorded: Path) -> None:
    wanted = [json.loads(line) for line in (recorded / "journal.jsonl").read_bytes().splitlines()]
    for words in (("replay", "a", "--json"), ("tail", "a", "--json", "-n", "100000")):
        out, _ = shell.apart(*words, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
        assert [json.loads(line) for line in out.splitlines()] == wanted


def _in_place_of(name: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(session: Path) -> None:
        path = session / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        make(path)

    return change


def _file(path: Path) -> None:
    path.write_text("x", encoding="utf-8")


OBSTACLES = {
    "candidates": _file,
    "inbox": _file,
    "best": lambda path: path.symlink_to("/nowhere"),
    "build": _file,
    "lock": os.mkfifo,
    "journal.jsonl": lambda path: path.symlink_to("snapshot.json"),
}


@pytest.mark.parametrize("name", OBSTACLES)
def test_something_else_in_a_files_place_is_named_and_nothing_is_touched(
    shell: Shell, recorded: Path, name: str
) -> None:
    _in_place_of(name, OBSTACLES[name])(recorded)
    before = {path: path.lstat().st_mtime_ns for path in recorded.rglob("*")}
    err = shell.apart("resume", "a", "--headless", "--candidates", "12", code=5)[1]
    assert err.count("\n") == 1
    assert str(recorded / name) in err
    assert {path: path.lstat().st_mtime_ns for path in recorded.rglob("*")} == before


def test_a_damaged_start_is_named_and_may_go_once_it_ran(shell: Shell, recorded: Path) -> None:
    (shell.folder / "mine.txt").write_bytes((recorded / "best" / "schedule.txt").read_bytes())
    start = shell.headless("b", candidates=2, **{"from": "mine.txt"}) / "start.json"
    first = folded(start.parent).rows[0].schedule
    for damage in (
        lambda: start.write_bytes(b""),
        lambda: start.write_bytes(b"\0" * 99),
        start.mkdir,
        lambda: os.mkfifo(start),
    ):
        start.unlink()
        damage()
        err = shell.apart("resume", "b", "--headless", "--candidates", "3", code=5)[1]
        assert err.count("\n") == 1
        assert str(start) in err or "start.json" in err
        assert "delete it" in err
        if start.is_dir():
            start.rmdir()
            start.touch()
    start.unlink()
    shell.apart("resume", "b", "--headless", "--candidates", "3")
    assert folded(start.parent).rows[0].schedule == first


def test_a_file_in_the_place_of_the_best_is_replaced(shell: Shell) -> None:
    session = shell.headless(candidates=1)
    _in_place_of("best", lambda path: path.mkdir())(session)
    (session / "best" / "kernel.c").mkdir()
    (session / ".best-new").write_text("x", encoding="utf-8")
    shell.apart("resume", "a", "--headless", "--candidates", "12")
    assert int((session / "best" / "candidate").read_text(encoding="utf-8")) == folded(session).incumbent
    assert not list(session.glob(".best*"))


def lost(recorded: Path, *numbers: int) -> None:
    """Lose lines of the record, as a power loss does, and the state that would have known them."""
    path = recorded / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    for number in numbers:
        lines[number] = b"\0" * (len(lines[number]) - 1) + b"\n"
    path.write_bytes(b"".join(lines))
    (recorded / "snapshot.json").unlink()


def goes_on(shell: Shell, recorded: Path) -> None:
    before = folded(recorded)
    shell.apart("resume", "a", "--headless", "--candidates", "12")
    after = folded(recorded)
    assert "Traceback" not in log_of(recorded)
    assert after.state == "done"
    ended = [row for row in before.rows if not row.in_flight]
    assert [after.rows[row.number] for row in ended] == ended
    if before.incumbent:
        assert after.incumbent == before.incumbent or after.rows[after.incumbent or 0].verdict == "accepted"


def _of(recorded: Path, kind: str, candidate: int) -> int:
    lines = (recorded / "journal.jsonl").read_bytes().splitlines()
    return next(
        place for place, line in enumerate(lines)
        if (event := json.loads(line))["kind"] == kind and event["candidate"] == candidate
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["Planned", "CandidateEnded"])
@pytest.mark.parametrize("whose", ["the baseline's", "the best's"])
def test_the_lines_that_hold_the_most(shell: Shell, recorded: Path, kind: str, whose: str) -> None:
    best = folded(recorded).incumbent or 0
    lost(recorded, _of(recorded, kind, 0 if "baseline" in whose else best))
    if "baseline" in whose:
        assert folded(recorded).incumbent == best
    goes_on(shell, recorded)


@pytest.mark.soak
def test_any_line_of_the_middle(shell: Shell, recorded: Path) -> None:
    kept = shell.folder / "kept"
    shutil.copytree(recorded, kept)
    for number in range(1, len((kept / "journal.jsonl").read_bytes().splitlines())):
        shutil.rmtree(recorded)
        shutil.copytree(kept, recorded)
        lost(recorded, number)
        goes_on(shell, recorded)


def test_a_record_of_lines_twice_or_with_other_line_ends(shell: Shell, recorded: Path) -> None:
    path, rows = recorded / "journal.jsonl", folded(recorded).rows
    content = path.read_bytes()
    changes = {
        "twice": b"".join(2 * line for line in content.splitlines(keepends=True)),
        "other ends": content.replace(b"\n", b"\r\n"),
        "empty lines": content.replace(b"\n", b"\n\n"),
        "a byte order mark": b"\xef\xbb\xbf" + content,
        "glued": content.replace(b"\n", b"", 20),
    }
    for name, changed in changes.items():
        path.write_bytes(changed)
        assert folded(recorded).rows == rows, name
        assert shell.json("show", "a")["state"] == "done"


def test_a_state_behind_the_record_is_never_believed(shell: Shell, recorded: Path) -> None:
    state = recorded / "snapshot.json"
    old = state.read_bytes()
    shell.apart("resume", "a", "--headless", "--candidates", "12")
    state.write_bytes(old)
    assert shell.json("status", "a")["candidates"]["effective"] >= 12
