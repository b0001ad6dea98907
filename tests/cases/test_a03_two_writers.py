"""A03 and pitfall 20: one engine a session; a second is refused at once, a dead one is replaced at once."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cake_tui.model import event as ev
from cake_tui.store.lock import read_holder
from tests.cases.shell import SLOW, Shell, all_gone, descendants, ended, events, gone, variations
from tests.engine.scripted import folded, states, until

START = ("run", "--backend", "simulated", "--device", SLOW)


def refused(shell: Shell, *words: str) -> str:
    """The words are refused as busy within two seconds; return what was said."""
    _, err = shell.within(2.0, *words, code=4)
    assert err.count("\n") == 1
    return err


def test_a_second_engine_is_refused_with_the_holder(shell: Shell) -> None:
    session = shell.brisk()
    until(lambda: ended(session) >= 1)
    shell.here("pause", "a")
    record = shell.still()
    err = refused(shell, *START, "--name", "a")
    for words in (err, refused(shell, *START, "--name", "a", "--headless")):
        for part in ('session "a"', f"PID {shell.pid()}", os.uname().nodename, "since 20", "cake-tui attach a"):
            assert part in words
    assert (session / "journal.jsonl").read_bytes() == record
    shell.here("resume", "a")  # a paused one is woken by its own engine
    for words in (("resume", "a"), ("resume", "a", "--headless"), ("resume", "a", "--candidates", "9")):
        assert f"PID {shell.pid()}" in refused(shell, *words)
    assert events(session, ev.EngineStarted)[0].pid == shell.pid()
    assert len(events(session, ev.EngineStarted)) == 1


def test_attach_export_and_all_that_reads_work_beside_the_engine(shell: Shell) -> None:
    session = shell.start(device="ridge,series_s=0.03,noise=0")
    until(lambda: ended(session) >= 2)
    assert "RUNNING" in shell.here("attach", "a")
    out = shell.folder / "best.c"
    shell.here("export", "a", "--output", str(out), "--allow-simulated")
    assert "entry" in out.read_text(encoding="utf-8") or out.stat().st_size > 1000
    for command in ("show", "status", "tail", "replay"):
        assert shell.here(command, "a")
    assert "a" in shell.here("list")
    seqs = [event.seq for event in events(session, ev.Event)]
    assert seqs == list(range(1, len(seqs) + 1))
    assert len(events(session, ev.EngineStarted)) == 1


def together(shell: Shell, *commands: tuple[str, ...]) -> list[tuple[int, str]]:
    """Start the commands within ten milliseconds; return their exit codes and what they said."""
    processes: list[subprocess.Popen[Any]] = [
        shell.popen(*words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for words in commands
    ]
    said = [process.communicate(timeout=60)[0] for process in processes]
    return [(process.returncode, text) for process, text in zip(processes, said)]


@pytest.mark.parametrize("many", variations([2, 5]))
def test_of_starts_at_once_exactly_one_wins(shell: Shell, many: int) -> None:
    found = together(shell, *[(*START, "--name", "b")] * many)
    assert sorted(code for code, _ in found) == [0] + [4] * (many - 1), found
    assert [path.name for path in shell.sessions.iterdir()] == ["b"]
    assert len(events(shell.sessions / "b", ev.EngineStarted)) == 1


def test_of_resumes_at_once_exactly_one_wins(shell: Shell, recorded: Path) -> None:
    found = together(shell, *[("resume", "a", "--candidates", "10000")] * 3)
    assert sorted(code for code, _ in found) == [0, 4, 4], found
    assert len(events(recorded, ev.EngineStarted)) == 2


def test_after_kill_9_a_resume_works_at_once(shell: Shell) -> None:
    session = shell.start()
    until(lambda: ended(session) >= 1)
    pid = shell.pid()
    os.kill(pid, signal.SIGKILL)
    until(lambda: gone(pid))
    assert "GONE" in shell.here("status", "a")
    shell.apart("resume", "a")
    assert shell.pid() != pid


def test_a_hung_engine_is_not_replaced(shell: Shell) -> None:
    session = shell.start()
    until(lambda: ended(session) >= 1)
    pid = shell.pid()
    children = descendants(pid)
    os.kill(pid, signal.SIGSTOP)
    until(lambda: states(pid) == {b"T"})
    record = (session / "journal.jsonl").read_bytes()
    assert f"PID {pid}" in refused(shell, "resume", "a")
    assert f"PID {pid}" in refused(shell, *START, "--name", "a")
    assert (session / "journal.jsonl").read_bytes() == record
    os.kill(pid, signal.SIGCONT)
    count = ended(session)
    until(lambda: ended(session) > count)
    os.kill(pid, signal.SIGKILL)
    until(all_gone([pid, *children]))


def test_a_lock_file_that_names_a_stranger_holds_nothing(shell: Shell, recorded: Path) -> None:
    """A machine that crashed leaves a lock; a process of another start time may have its number now."""
    holder = f'{{"pid":{os.getpid()},"start":1,"host":"{os.uname().nodename}","since":"2026-01-01T00:00:00Z"}}'
    (recorded / "lock").write_text(holder.ljust(1023) + "\n", encoding="utf-8")
    best = folded(recorded).incumbent
    shell.apart("resume", "a", "--headless", "--candidates", "11")
    assert read_holder(recorded / "lock") is None
    assert folded(recorded).incumbent == best or folded(recorded).incumbent is not None


def test_a_missing_or_unreadable_lock_file_is_no_obstacle(shell: Shell, recorded: Path) -> None:
    (recorded / "lock").unlink()
    shell.apart("resume", "a", "--headless", "--candidates", "11")
    (recorded / "lock").write_bytes(os.urandom(3000))
    shell.apart("resume", "a", "--headless", "--candidates", "12")
