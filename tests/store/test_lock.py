"""Locks: freed by any death, told by pid and start time, shared by users where devices are meant."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from cake_tui.errors import BUSY, ENVIRONMENT, UserError
from cake_tui.store.lock import (
    Holder,
    Lock,
    is_running,
    living_holder,
    network_file_system,
    read_holder,
    start_ticks,
    take_device,
)  # fmt: skip

HOLDER = """
import sys, time
from pathlib import Path
from cake_tui.store.lock import Lock
lock = Lock(Path(sys.argv[1]))
print(lock.take(), flush=True)
lock.sign(what="session-x", who="somebody", note="")
print("signed", flush=True)
time.sleep(60)
"""


def hold(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    assert process.stdout.readline() == "signed\n"
    return process


def test_a_killed_holder_frees_the_lock_and_a_hung_one_does_not(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    process = hold(path)
    try:
        process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        assert not Lock(path).take()
        assert time.monotonic() - began < 1
        holder = living_holder(path)
        assert holder is not None
        assert (holder.pid, holder.what, holder.who) == (process.pid, "session-x", "somebody")
        process.kill()
        assert living_holder(path) is None or process.wait() is not None
        process.wait()
        assert living_holder(path) is None
        lock = Lock(path)
        assert lock.take()
        lock.release()
    finally:
        process.kill()
        process.communicate()


def test_a_pid_that_another_process_has_now_holds_nothing(tmp_path: Path) -> None:
    mine = start_ticks(os.getpid())
    assert mine is not None
    import socket

    now = Holder(os.getpid(), mine, socket.gethostname(), "")
    assert is_running(now)
    assert not is_running(msgspec.structs.replace(now, start=mine + 1))
    assert start_ticks(2**22 + 1) is None
    (tmp_path / "lock").write_bytes(msgspec.json.encode(msgspec.structs.replace(now, start=mine - 1)))
    assert living_holder(tmp_path / "lock") is None


def test_an_unreadable_holder_is_nobody(tmp_path: Path) -> None:
    for content in (b"", b"\0" * 100, b"{", b"[1]", b"\xff\xfe"):
        (tmp_path / "lock").write_bytes(content)
        assert read_holder(tmp_path / "lock") is None
        lock = Lock(tmp_path / "lock")
        assert lock.take()
        lock.release()


def test_a_note_is_written_in_place(tmp_path: Path) -> None:
    lock = Lock(tmp_path / "lock")
    assert lock.take()
    lock.sign(what="s")
    size = (tmp_path / "lock").stat().st_size
    lock.note("PAUSED: no space " + "x" * 5000)
    assert (tmp_path / "lock").stat().st_size == size
    holder = read_holder(tmp_path / "lock")
    assert holder is not None
    assert holder.note.startswith("PAUSED: no space")
    lock.release()


def test_a_device_is_one_sessions_at_a_time_and_everybodys_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "locks"
    monkeypatch.setenv("CAKE_TUI_LOCKS", str(folder))
    held = take_device("cpu:12/34", "first", "somebody")
    assert held is not None
    assert folder.stat().st_mode & 0o7777 == 0o1777
    (file,) = folder.iterdir()
    assert file.stat().st_mode & 0o777 == 0o666
    with pytest.raises(UserError) as busy:
        take_device("cpu:12/34", "second", "other")
    assert busy.value.exit_code == BUSY
    for part in ("cpu:12/34", '"first"', "somebody", str(os.getpid())):
        assert part in str(busy.value)
    other = take_device("GPU-1", "second", "other")
    assert other is not None
    held.release()
    again = take_device("cpu:12/34", "second", "other")
    assert again is not None
    again.release()
    other.release()


def test_a_simulated_device_needs_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAKE_TUI_LOCKS", str(tmp_path / "locks"))
    assert take_device("simulated:ridge", "a", "x") is None
    assert not (tmp_path / "locks").exists()


def test_a_lock_folder_that_cannot_be_made_is_the_machines_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("CAKE_TUI_LOCKS", str(tmp_path / "file" / "locks"))
    with pytest.raises(UserError) as refused:
        take_device("cpu:1", "a", "x")
    assert refused.value.exit_code == ENVIRONMENT


def test_a_planted_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "locks"
    folder.mkdir()
    (tmp_path / "victim").write_text("precious", encoding="utf-8")
    (folder / "cpu_1.lock").symlink_to(tmp_path / "victim")
    monkeypatch.setenv("CAKE_TUI_LOCKS", str(folder))
    with pytest.raises(UserError):
        take_device("cpu:1", "a", "x")
    assert (tmp_path / "victim").read_text(encoding="utf-8") == "precious"


def test_network_file_systems_are_told_by_the_deepest_mount(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    inner = tmp_path / "in ner"
    (inner / "deep").mkdir(parents=True)
    escaped = str(inner).replace(" ", "\\040")
    mounts.write_text(f"/dev/sda / ext4 rw 0 0\nserver:/x {escaped} nfs4 rw 0 0\nbroken\n", encoding="utf-8")
    assert network_file_system(inner / "deep", mounts) == "nfs4"
    assert network_file_system(tmp_path, mounts) is None
    assert network_file_system(tmp_path, tmp_path / "missing") is None
