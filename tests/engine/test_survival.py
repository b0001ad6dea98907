"""What an engine lives through: kill -9, closed and frozen terminals, full disks, a day's worth of files."""

from __future__ import annotations

import contextlib
import os
import pty
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cake_tui.model import event as ev
from cake_tui.store.disk import disk_bytes
from cake_tui.store.inbox import send
from cake_tui.store.lock import living_holder, read_holder
from cake_tui.store.reading import JournalReader
from cake_tui.store.telemetry import BeatReader
from tests.engine import scripted
from tests.engine.scripted import Script, folded, kinds, until

KILLS = 20


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Path]:
    """The folder of session ``a``; whoever still runs it at the end is ended."""
    yield tmp_path / "a"
    holder = living_holder(tmp_path / "a" / "lock")
    if holder is not None and holder.pid != os.getpid():
        scripted.kill(holder.pid)


def test_kill_9_at_random_moments_loses_at_most_the_step_in_flight(session: Path, soak_share: float) -> None:
    rng = random.Random(5)
    for _ in range(max(4, round(KILLS * soak_share))):
        started = scripted.start(session.parent, candidates=100_000, step_s=0.003)
        time.sleep(rng.uniform(0.05, 0.4))
        before = folded(session)
        scripted.kill(started.pid)
        until(lambda pid=started.pid: scripted.gone(pid))
        after = folded(session)
        assert living_holder(session / "lock") is None
        assert after.seq >= before.seq
        for known, kept in zip(before.rows, after.rows):
            assert known.in_flight or known == kept
        assert after.incumbent is None or after.rows[after.incumbent].verdict in ("accepted", None)
        assert len(list(after.in_flight())) <= 1
    total = len(folded(session).rows)
    assert scripted.run(session.parent, "a", Script(candidates=total + 3)) == 0
    history = folded(session)
    assert [row.number for row in history.rows] == list(range(len(history.rows)))
    assert not list(history.in_flight())
    assert history.effective == total + 3
    best = max(number for number in range(total + 3) if number % 5 == 0)
    assert history.incumbent == best
    assert (session / "best" / "kernel.c").read_text(encoding="utf-8") == f"// candidate {best}\n"
    seqs = [event.seq for event in JournalReader(session / "journal.jsonl").read()]
    assert seqs == list(range(1, len(seqs) + 1))


class Terminal:
    """A pseudo terminal for one program, which is its controlling one; read it or not, then hang up."""

    def __init__(self, command: list[str], *, ignore_hup: bool = False) -> None:
        self.master, slave = pty.openpty()

        def before() -> None:
            if ignore_hup:
                signal.signal(signal.SIGHUP, signal.SIG_IGN)
            os.setsid()
            os.close(os.open(os.ttyname(slave), os.O_RDWR))  # the first one opened becomes the controlling one

        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, preexec_fn=before, close_fds=True
        )  # fmt: skip
        os.close(slave)

    def hang_up(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.master)


def ended(session: Path) -> int:
    return kinds(session).count("CandidateEnded") if (session / "journal.jsonl").exists() else 0


def stopped_behind(pid: int, session: Path, kind: str) -> bool:
    """Stop a process; it goes on where its session's last event is not of this kind."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: scripted.states(pid) == {b"T"})
    if kinds(session)[-1] == kind:
        return True
    os.kill(pid, signal.SIGCONT)
    return False


def test_a_headless_run_ends_in_order_when_its_terminal_goes(session: Path) -> None:
    terminal = Terminal(scripted.command(session.parent, "a", candidates=1000, step_s=0.03))
    until(lambda: ended(session) >= 3)
    until(lambda: stopped_behind(terminal.process.pid, session, "BuildEnded"))  # a candidate is being evaluated
    terminal.hang_up()  # which continues it
    assert terminal.process.wait(60) == 129
    history = folded(session)
    assert (history.state, history.state_reason) == ("stopped", "SIGHUP")
    assert history.rows[-1].outcome == "Interrupted"
    best, rows = history.incumbent, len(history.rows)
    assert scripted.run(session.parent, "a", Script(candidates=history.effective + 2, win_every=1000)) == 0
    again = folded(session)
    assert again.incumbent == best
    assert len(again.rows) == rows + 2


def test_a_headless_run_under_nohup_goes_on_without_its_terminal(session: Path) -> None:
    terminal = Terminal(scripted.command(session.parent, "a", candidates=1000, step_s=0.02), ignore_hup=True)
    until(lambda: ended(session) >= 2)
    terminal.hang_up()
    before = ended(session)
    until(lambda: ended(session) >= before + 3)
    assert terminal.process.poll() is None
    log = (session / "engine.log").read_text(encoding="utf-8")
    assert f"#{before + 1} " in log
    terminal.process.terminate()
    assert terminal.process.wait(60) == 143


def test_a_detached_run_never_notices_the_terminal_of_its_starter(session: Path) -> None:
    terminal = Terminal(scripted.command(session.parent, "a", candidates=1000, step_s=0.02, detached=1))
    assert terminal.process.wait(60) == 0
    until(lambda: ended(session) >= 1)
    terminal.hang_up()
    before = ended(session)
    until(lambda: ended(session) >= before + 3)
    holder = living_holder(session / "lock")
    assert holder is not None
    os.kill(holder.pid, signal.SIGHUP)
    before = ended(session)
    until(lambda: ended(session) >= before + 2)
    assert os.getsid(holder.pid) != os.getsid(0)
    for descriptor in (0, 1, 2):
        assert "pts" not in str(Path(f"/proc/{holder.pid}/fd/{descriptor}").readlink())


def test_a_terminal_that_nobody_reads_holds_nothing_up(session: Path) -> None:
    terminal = Terminal(scripted.command(session.parent, "a", candidates=500, step_s=0.0))
    assert terminal.process.wait(60) == 0
    assert folded(session).state == "done"
    os.set_blocking(terminal.master, False)
    shown = b""
    with contextlib.suppress(OSError):
        while block := os.read(terminal.master, 1 << 16):
            shown += block
    assert 0 < shown.count(b"\n") < 500  # it was full, and what did not fit was dropped
    terminal.hang_up()


def test_a_pipe_that_is_closed_holds_nothing_up(session: Path) -> None:
    engine = subprocess.Popen(
        scripted.command(session.parent, "a", candidates=30, step_s=0.005), stdout=subprocess.PIPE
    )
    assert engine.stdout is not None
    engine.stdout.readline()
    engine.stdout.close()
    assert engine.wait(60) == 0
    assert folded(session).effective == 30


def test_without_space_it_pauses_with_one_line_and_goes_on_where_it_stopped(session: Path) -> None:
    started = scripted.start(session.parent, candidates=10_000, step_s=0.001, fsize=60_000)
    until(lambda: (session / "journal.jsonl").stat().st_size > 50_000)
    until(lambda: (holder := read_holder(session / "lock")) is not None and "no space" in holder.note)
    holder = living_holder(session / "lock")
    assert holder is not None
    for part in (str(session), "bytes free", ".json"):
        assert part in holder.note
    record = (session / "journal.jsonl").read_bytes()
    snapshot = (session / "snapshot.json").read_bytes()
    time.sleep(0.7)
    assert (session / "journal.jsonl").read_bytes() == record
    assert (session / "snapshot.json").read_bytes() == snapshot
    assert record.endswith(b"\n")
    said = [line for line in log_of(session).splitlines() if "no space" in line]
    assert len(said) == 1
    assert "Traceback" not in log_of(session)
    resource.prlimit(started.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    until(lambda: (session / "journal.jsonl").stat().st_size > len(record))
    until(lambda: "going on" in log_of(session))
    assert "is written again" in log_of(session)
    send(session, "stop")
    until(lambda: scripted.gone(started.pid))
    history = folded(session)
    assert history.state == "stopped"
    assert [row.number for row in history.rows] == list(range(len(history.rows)))
    new = read_holder(session / "lock")
    assert new is None


def log_of(session: Path) -> str:
    return (session / "engine.log").read_text(encoding="utf-8")


def test_a_run_without_space_can_still_be_stopped_and_resumed(session: Path) -> None:
    started = scripted.start(session.parent, candidates=10_000, step_s=0.001, fsize=30_000)
    until(lambda: (holder := read_holder(session / "lock")) is not None and "no space" in holder.note)
    scripted.kill(started.pid, signal.SIGTERM)
    until(lambda: scripted.gone(started.pid))
    before = folded(session)
    assert scripted.run(session.parent, "a", Script(candidates=before.effective + 3)) == 0
    assert folded(session).effective == before.effective + 3


CROWDED = """
import json, subprocess, sys, time
from pathlib import Path
from tests.engine import scripted
room = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(room)], check=True)
filler = room / "filler"
filler.write_bytes(b"x" * (900 * 1024))
started = scripted.start(room, candidates=10_000, step_s=0.001)
session = room / "a"
def full():
    holder = scripted_holder()
    return holder is not None and "no space" in holder.note
from cake_tui.store.lock import read_holder
def scripted_holder():
    return read_holder(session / "lock")
scripted.until(full)
note = scripted_holder().note
before = (session / "journal.jsonl").read_bytes()
snapshot = (session / "snapshot.json").read_bytes()
time.sleep(0.5)
same = (session / "journal.jsonl").read_bytes() == before and (session / "snapshot.json").read_bytes() == snapshot
filler.unlink()
scripted.until(lambda: (session / "journal.jsonl").stat().st_size > len(before) + 2000)
scripted.kill(started.pid, 15)
scripted.until(lambda: scripted.gone(started.pid))
history = scripted.folded(session)
print(json.dumps({"note": note, "same": same, "state": history.state, "rows": [row.number for row in history.rows]}))
"""


@pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0,
    reason="needs the right to mount a small file system",
)
def test_on_a_file_system_that_is_full_for_real(tmp_path: Path) -> None:
    room = tmp_path / "room"
    room.mkdir()
    done = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", CROWDED, str(room)], capture_output=True, text=True, timeout=240,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    import json

    told = json.loads(done.stdout)
    assert told["same"] is True
    assert str(room / "a") in told["note"]
    assert told["state"] == "stopped"
    assert told["rows"] == list(range(len(told["rows"])))


def test_a_day_of_talkative_candidates_stays_within_its_bound(session: Path, soak_share: float) -> None:
    count = round(20_000 * soak_share)
    bound = 0.015 + 9e-6 * count  # GB; unpruned it would be eight times that
    started = scripted.start(session.parent, candidates=count, log_bytes=200_000, disk=bound, heartbeat=0.05)
    beats = BeatReader(session / "telemetry.jsonl")
    until(lambda: any(beat.effective >= count / 2 for beat in beats.read()), 250)
    assert disk_bytes(session) <= bound * 1e9
    (session / "engine.log").unlink()
    until(lambda: (session / "engine.log").exists())
    assert not [path for path in scripted.open_files(started.pid) if "engine.log (deleted)" in path]
    until(lambda: scripted.gone(started.pid), 250)
    assert disk_bytes(session) <= bound * 1e9
    history = folded(session)
    assert history.state == "done"
    assert history.effective == count
    assert history.incumbent is not None
    assert (session / "best" / "kernel.c").is_file()
    log = session / "candidates" / str(count - 1) / "build.log"
    assert "200000 bytes in all" in log.read_text(encoding="utf-8")


def test_a_torn_end_is_told_in_one_line_and_kept_at_both_resumes(session: Path) -> None:
    assert scripted.run(session.parent, "a", Script(candidates=40)) == 0
    journal = session / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines) if b'"kind":"CandidateEnded"' in line)
    journal.write_bytes(b"".join(lines[: last + 1])[:-17])
    before = folded(session)
    assert scripted.run(session.parent, "a", Script(candidates=43)) == 0
    noticed = [event for event in JournalReader(journal).read() if isinstance(event, ev.Noticed)]
    assert len(noticed) == 1
    stub = len(lines[last]) - 17
    for part in (str(journal), f"line {last + 1}", f"{stub} bytes", "candidate 39 "):
        assert part in noticed[0].text
    assert (session / f"journal.jsonl.torn-{last + 1}").read_bytes() == lines[last][:-17] + b"\n"
    assert scripted.run(session.parent, "a", Script(candidates=44)) == 0
    after = folded(session)
    assert after.rows[:39] == before.rows[:39]
    assert after.effective == 44
    assert all(line.count(b'"seq":') == 1 for line in journal.read_bytes().splitlines())
    assert before.incumbent == 35
    assert after.incumbent == 40


def test_a_session_folder_that_is_deleted_ends_the_run_with_its_name(session: Path) -> None:
    engine = subprocess.Popen(
        scripted.command(session.parent, "a", candidates=10_000, step_s=0.02), stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    until(lambda: ended(session) >= 1)
    session.rename(session.with_name("moved"))
    said = engine.communicate(timeout=60)[0]
    assert engine.returncode == 3
    assert "was moved or deleted" in said.splitlines()[-1] or "was moved or deleted" in said
    assert len(said.splitlines()) < 200
