"""A25: a day of talkative candidates stays within its bound; logs rotate, a deleted one gives its space back."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cake_tui.store.disk import disk_bytes
from tests.cases.shell import ROOT, Shell, ended, log_of, variations
from tests.engine.scripted import folded, gone, open_files, until


@pytest.mark.soak
def test_the_folder_stays_within_its_bound(shell: Shell, soak_share: float) -> None:
    """Real compilers with 200 KB of warnings each, through the whole product; tests/engine has the 20,000."""
    count = max(16, round(1000 * soak_share / 2.5))
    bound = 0.004 + 8e-6 * (count - 16)  # GB; the record itself, which is never dropped, grows by 6 KB a candidate
    flags = {"candidates": count, "set": f"disk={bound}"}
    session = shell.start(device="ridge,log_bytes=200000,failures=0", **flags)
    pid = shell.pid()
    until(lambda: ended(session) >= count / 2, 300)
    (session / "engine.log").unlink()
    until(lambda: (session / "engine.log").exists())
    assert not [path for path in open_files(pid) if "engine.log (deleted)" in path]
    assert disk_bytes(session) <= bound * 1e9
    until(lambda: gone(pid), 300)
    assert disk_bytes(session) <= bound * 1e9
    assert "DONE" in log_of(session)
    history = folded(session)
    assert history.state == "done"
    assert history.effective >= count
    assert [row.number for row in history.rows] == list(range(len(history.rows)))
    # What a candidate keeps: head and tail with the true size.
    last = next(row.number for row in reversed(history.rows) if row.outcome == "Measured")
    log = (session / "candidates" / str(last) / "build.log").read_text(encoding="utf-8")
    assert len(log) < 70_000
    told = re.search(r"^\.\.\. (\d+) bytes left out \.\.\.$", log, re.MULTILINE)
    assert told is not None
    assert int(told[1]) + len(log.encode()) - len(told[0]) - 2 >= 200_000  # the true size
    # Record and best are never dropped.
    assert history.incumbent is not None
    best = session / "best"
    assert int((best / "candidate").read_text(encoding="utf-8")) == history.incumbent
    assert (best / "kernel.c").is_file()
    assert (session / "candidates" / str(history.incumbent) / "kernel.c").is_file()


def test_a_smaller_bound_in_the_middle_of_a_run_is_kept(shell: Shell) -> None:
    session = shell.start(device="ridge,log_bytes=200000,failures=0", candidates=10_000)
    until(lambda: disk_bytes(session) > 4.2e6)
    shell.here("set", "a", "disk=0.004")
    until(lambda: disk_bytes(session) <= 4.0e6)
    count = ended(session)
    until(lambda: ended(session) >= count + 2)
    shell.here("stop", "a")
    history = folded(session)
    assert (session / "best" / "kernel.c").is_file()
    assert [row.number for row in history.rows] == list(range(len(history.rows)))


def replaced_by_a_folder(path: Path) -> bool:
    """Try to put a folder in a file's place; the engine may be quicker to make the file anew."""
    path.unlink(missing_ok=True)
    with contextlib.suppress(FileExistsError):
        path.mkdir()
    return path.is_dir()


@pytest.mark.parametrize("name", variations(["telemetry.jsonl", "engine.log"]))
def test_whatever_log_is_deleted_moved_or_made_a_folder(shell: Shell, name: str) -> None:
    session = shell.start(candidates=10_000, set="heartbeat=0.05")
    until(lambda: ended(session) >= 1)
    (session / name).rename(session / "elsewhere")
    until(lambda: (session / name).exists())
    until(lambda: replaced_by_a_folder(session / name))
    count = ended(session)
    until(lambda: ended(session) >= count + 2)
    (session / name).rmdir()
    until(lambda: (session / name).is_file())
    shell.here("stop", "a")
    assert folded(session).state == "stopped"


IN_ITS_PLACE: dict[str, Callable[[Path], object]] = {
    "a folder": lambda path: path.mkdir(),
    "a pipe that nobody reads": os.mkfifo,
    "a link to nowhere": lambda path: path.symlink_to("/nowhere/x"),
}


@pytest.mark.parametrize("what", variations(IN_ITS_PLACE, 2))
def test_whatever_stands_in_a_logs_place_a_resume_goes_on(shell: Shell, recorded: Path, what: str) -> None:
    for name in ("telemetry.jsonl", "engine.log"):
        (recorded / name).unlink()
        IN_ITS_PLACE[what](recorded / name)
    before = folded(recorded)
    shell.apart("resume", "a", "--headless", "--candidates", str(before.effective + 1))
    assert folded(recorded).effective > before.effective


def test_the_bound_is_documented() -> None:
    from cake_tui.config import Settings

    assert Settings().flat()["disk"] == 2.0
    text = (ROOT / "cake_tui" / "config.py").read_text(encoding="utf-8")
    assert "GB a session" in text


def test_a_record_that_is_deleted_ends_the_run_with_its_name(shell: Shell) -> None:
    session = shell.start(candidates=10_000)
    pid = shell.pid()
    until(lambda: ended(session) >= 1)
    (session / "journal.jsonl").rename(session / "journal.moved")
    until(lambda: gone(pid))
    assert "was moved or deleted while the run went on" in log_of(session)
    (session / "journal.moved").rename(session / "journal.jsonl")
    shell.apart("resume", "a")
    for line in (session / "journal.jsonl").read_bytes().splitlines():
        json.loads(line)
    shell.here("stop", "a")
