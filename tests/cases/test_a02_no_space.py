"""A02: a disk that fills up holds the run up and costs it nothing; a state file that is lost is rebuilt."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cake_tui.model import event as ev
from cake_tui.store.lock import read_holder
from tests.cases.shell import Shell, events, gone, log_of, screen, variations
from tests.engine.scripted import folded, until

CAN_MOUNT = (
    shutil.which("unshare") is not None
    and subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
)
mounts = pytest.mark.skipif(not CAN_MOUNT, reason="needs the right to mount a small file system")


def note_of(session: Path) -> str:
    holder = read_holder(session / "lock")
    return holder.note if holder is not None else ""


# What happens on a small file system of its own; the program prints what it saw.
SMALL = """
import json, os, subprocess, sys, time
from pathlib import Path
from tests.cases.shell import Shell, events, ended, log_of
from tests.cases.test_a02_no_space import free, fill, note_of
from cake_tui.model import event as ev
from tests.engine.scripted import folded, gone, until
work, backend, free_kib = Path(sys.argv[1]), sys.argv[2].split(), int(sys.argv[3])
size, candidates = sys.argv[4:6]
least = 3 if "simulated" in backend else 1
room = work / "sessions"
room.mkdir()
subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(room)], check=True)
shell = Shell(work)
os.chdir(work)
os.environ.update(CAKE_TUI_LOCKS=shell.environment["CAKE_TUI_LOCKS"])
values = ("heartbeat=0.1", "disk=0.001", "guard_refusals=1")  # the last: on a busy processor nothing waits for calm
shell.apart(
    "run", *backend, "--name", "a", "--candidates", candidates, *(word for value in values for word in ("--set", value))
)
session = room / "a"
pid = shell.pid()
until(lambda: ended(session) >= least)
fill(room, free_kib)
until(lambda: "no space" in note_of(session))
seen = {"note": note_of(session)}
time.sleep(0.3)
record, state = (session / "journal.jsonl").read_bytes(), (session / "snapshot.json").read_bytes()
time.sleep(0.6)
seen["still"] = (session / "journal.jsonl").read_bytes() == record
seen["state"] = (session / "snapshot.json").read_bytes() == state
seen["status"] = shell.here("status", "a")
seen["alive"] = not gone(pid)
failed = folded(session).counts.get("failed", 0)
(room / "filler").unlink()
until(lambda: len((session / "journal.jsonl").read_bytes()) > len(record))
if candidates == "10000":
    count = ended(session)
    until(lambda: ended(session) >= count + 2)
    shell.here("stop", "a")
until(lambda: gone(pid), 120)
seen["log"] = log_of(session)
history = folded(session)
seen["rows"] = [row.number for row in history.rows]
seen["failed"] = history.counts.get("failed", 0) - failed
seen["reasons"] = [row.reason for row in history.rows if row.outcome == "BuildFailed"]
seen["elapsed"] = history.elapsed_s
seen["gaps"] = [gap.seconds for gap in events(session, ev.GapSeen) if gap.what == "no space"]
seen["end"], seen["effective"] = history.state, history.effective
print(json.dumps(seen))
"""


def free(room: Path) -> int:
    return shutil.disk_usage(room).free


def fill(room: Path, left_kib: int) -> None:
    """Leave so much; a page is the least that a tmpfs gives, and an engine may be quicker to take the last."""
    with contextlib.suppress(OSError), (room / "filler").open("wb", buffering=0) as filler:
        filler.write(b"x" * max(0, free(room) - left_kib * 1024))


def crowded(tmp_path: Path, backend: str, free_kib: int, size: str = "3m", candidates: int = 10_000) -> Any:
    words = [str(tmp_path), backend, str(free_kib), size, str(candidates)]
    done = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", SMALL, *words],
        capture_output=True, text=True, timeout=240, check=False, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@mounts
@pytest.mark.parametrize(
    ("backend", "free_kib"),
    [
        pytest.param("--backend simulated --device ridge,series_s=0.02", 0, marks=pytest.mark.soak),
        pytest.param("--backend cpu --shape M=32,N=32,K=32", 100, marks=[pytest.mark.cc, pytest.mark.soak]),
    ],
)
def test_a_full_file_system_is_waited_out(tmp_path: Path, backend: str, free_kib: int) -> None:
    seen = crowded(tmp_path, backend, free_kib)
    held_up(tmp_path, seen)
    assert seen["end"] == "stopped"


@mounts
def test_the_case_itself(tmp_path: Path, soak_share: float) -> None:
    """As it was reported: 1 MiB, of which 4 KiB are left, 50 candidates; then there is room again."""
    candidates = max(6, round(50 * soak_share))
    seen = crowded(tmp_path, "--backend simulated --device ridge,series_s=0.02", 4, "1m", candidates)
    held_up(tmp_path, seen)
    assert seen["end"] == "done"
    assert seen["effective"] >= candidates


def held_up(tmp_path: Path, seen: Any) -> None:
    """It said so once, touched nothing, and went on when there was room, with nothing lost."""
    session = tmp_path / "sessions" / "a"
    assert re.fullmatch(
        rf"PAUSED: no space in {re.escape(str(session))}: \d+ bytes free, cannot write [\w.-]+", seen["note"]
    )
    assert f"PAUSED: no space in {session}: " in seen["status"]
    assert (seen["still"], seen["state"], seen["alive"]) == (True, True, True)
    assert seen["log"].count("PAUSED: no space") == 1  # at most one a minute
    assert "Traceback" not in seen["log"]
    assert "is written again" in seen["log"]
    assert "the disk was full; it does not count against the budget" in seen["log"]
    assert seen["rows"] == list(range(len(seen["rows"])))
    assert not [reason for reason in seen["reasons"] if "space" in reason]
    assert sum(seen["gaps"]) > 0.6


ENDED = """
import os, subprocess, sys
from pathlib import Path
from tests.cases.shell import Shell
from tests.cases.test_a02_no_space import fill
work, room = Path(sys.argv[1]), Path(sys.argv[1]) / "sessions"
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(room)], check=True)
shell = Shell(work)
shell.headless(candidates=3)
for cut in (0, 17):
    os.truncate(room / "a" / "journal.jsonl", (room / "a" / "journal.jsonl").stat().st_size - cut)
    fill(room, 0)
    before = {path: path.read_bytes() for path in (room / "a").rglob("*.json*") if path.is_file()}
    for words in (["resume", "a"], ["resume", "a", "--headless"], ["run", "--backend", "simulated", "--name", "b"]):
        err = shell.apart(*words, "--candidates", "9", code=3)[1]
        assert err.count("\\n") == 1, err
        assert "no space" in err and "bytes free" in err and str(room) in err, err
        assert [path.name for path in room.iterdir() if path.is_dir()] == ["a"], list(room.iterdir())
    assert before == {path: path.read_bytes() for path in (room / "a").rglob("*.json*") if path.is_file()}
    (room / "filler").unlink()
assert "half written" in shell.apart("resume", "a", "--headless", "--candidates", "9")[0]
"""


@mounts
def test_nothing_starts_without_space_and_nothing_is_touched(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    command = ["unshare", "-m", sys.executable, "-c", ENDED, str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, cwd=Path(__file__).parents[2]
    )
    assert done.returncode == 0, done.stderr


def test_a_limit_on_file_sizes_is_a_full_disk_too(shell: Shell) -> None:
    session = shell.start(candidates=10_000, set="heartbeat=0.1")
    pid = shell.pid()
    until(lambda: len(events(session, ev.CandidateEnded)) >= 1)
    size = (session / "journal.jsonl").stat().st_size
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))
    until(lambda: "no space" in note_of(session))
    assert "journal.jsonl" in note_of(session)
    with screen(shell, "attach", "a") as terminal:
        until(lambda: b"no space in" in terminal.read(0.1))
    record = (session / "journal.jsonl").read_bytes()
    assert record.endswith(b"\n")
    time.sleep(1.5)
    assert "going on" not in log_of(session)  # there is room, but none for this file
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    until(lambda: len((session / "journal.jsonl").read_bytes()) > len(record))
    until(lambda: "is written again" in log_of(session))
    assert log_of(session).count("PAUSED: no space") == 1
    assert log_of(session).count("going on after") == 1
    shell.here("stop", "a")
    assert [row.number for row in folded(session).rows] == list(range(len(folded(session).rows)))


def test_limits_lower_than_ours_are_kept_and_no_obstacle(shell: Shell) -> None:
    words = " ".join(f"'{word}'" for word in shell.words("run", "--backend", "simulated", "--name", "a", "--headless"))
    command = ["bash", "-c", f"ulimit -f 2000; ulimit -c 0; {words} --candidates 3"]
    subprocess.run(command, cwd=shell.folder, env=shell.environment, timeout=60, check=True, capture_output=True)
    assert folded(shell.sessions / "a").state == "done"


def test_a_run_without_space_ends_in_order_when_it_is_told_to(shell: Shell) -> None:
    session = shell.start(candidates=10_000)
    pid = shell.pid()
    until(lambda: len(events(session, ev.CandidateEnded)) >= 1)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    until(lambda: "no space" in note_of(session))
    before = folded(session)
    shell.here("stop", "a")
    until(lambda: gone(pid))
    assert folded(session).rows == before.rows
    shell.apart("resume", "a", "--headless", "--candidates", str(before.effective + 2))
    after = folded(session)
    assert after.effective >= before.effective + 2
    ended = [row for row in before.rows if not row.in_flight]
    assert [after.rows[row.number] for row in ended] == ended


UNSEEN = ("missing", "a link to nowhere")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


LOST = {
    "empty": lambda path: path.write_bytes(b""),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "missing": lambda path: path.unlink(),
    "binary": lambda path: path.write_bytes(os.urandom(4096)),
    "of another kind": lambda path: path.write_text("[1, 2, 3]"),
    "a folder": _folder,
    "a link to nowhere": lambda path: (path.unlink(), path.symlink_to("/nowhere")),
}


@pytest.mark.parametrize("how", variations(LOST, 2))
def test_a_lost_state_is_rebuilt_from_the_record(shell: Shell, recorded: Path, how: str) -> None:
    before = folded(recorded)
    best = shell.json("show", "a")["best"]
    LOST[how](recorded / "snapshot.json")
    assert shell.json("status", "a")["best"] == best
    assert shell.here("show", "a").count("is rebuilt") == (0 if how in UNSEEN else 1)
    out, err = shell.apart("resume", "a", "--headless")
    assert out.count("is rebuilt") == (0 if how in UNSEEN else 1), out
    assert err == ""
    assert folded(recorded).rows == before.rows
    assert shell.json("show", "a")["best"] == best
    if how not in ("a folder",):
        assert json.loads((recorded / "snapshot.json").read_text(encoding="utf-8"))["summary"]["state"] == "done"
