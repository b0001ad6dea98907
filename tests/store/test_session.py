"""The session's folder: made in one step, one winner, candidates' files, best/ swapped whole, a bounded size."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

import pytest

from cake_tui.errors import BUSY, DAMAGED, USAGE, UserError
from cake_tui.store import name as names
from cake_tui.store.clock import Clocks
from cake_tui.store.disk import RECOUNT_EVERY, DiskBound, Keep, disk_bytes
from cake_tui.store.lock import Lock, living_holder
from cake_tui.store.session import LOG_CHARACTERS, Session, create, open_locked, read_document
from tests.store import journals


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return create(tmp_path, journals.created("a"), Clocks(), who="somebody")


def test_a_new_session_is_private_locked_and_begins_with_its_first_event(tmp_path: Path, session: Session) -> None:
    assert session.path == tmp_path / "a"
    assert session.path.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in session.path.iterdir() if path.is_file())
    assert all(path.stat().st_mode & 0o777 == 0o700 for path in session.path.iterdir() if path.is_dir())
    first = json.loads(session.journal_path.read_text(encoding="utf-8").splitlines()[0])
    assert (first["kind"], first["seq"]) == ("SessionCreated", 1)
    holder = living_holder(session.path / "lock")
    assert holder is not None
    assert (holder.pid, holder.who) == (os.getpid(), "somebody")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_session_toml_is_toml_with_settings_problem_and_device(session: Session) -> None:
    document = tomllib.loads((session.path / "session.toml").read_text(encoding="utf-8"))
    assert document["settings"]["candidates"] == 600
    assert document["device"]["uuid"] == "simulated:ridge"
    assert document["problem"]["shapes"] == [{"sizes": [["M", 512], ["N", 512], ["K", 512]]}]
    session.write_settings({**document["settings"], "candidates": 900})
    again = read_document(session.path).value
    assert again["settings"]["candidates"] == 900
    assert {**again, "settings": 0} == {**document, "settings": 0}


def test_a_name_that_is_taken_is_refused_and_nothing_is_left(tmp_path: Path, session: Session) -> None:
    with pytest.raises(UserError) as busy:
        create(tmp_path, journals.created("a"), Clocks(), who="x")
    assert busy.value.exit_code == BUSY
    assert "attach a" in str(busy.value)
    assert str(os.getpid()) in str(busy.value)
    session.lock.release()
    (session.path / "lock").unlink()
    with pytest.raises(UserError) as taken:
        create(tmp_path, journals.created("a"), Clocks(), who="x")
    assert taken.value.exit_code == USAGE
    assert "resume a" in str(taken.value)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_folder_that_cannot_be_made_is_the_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UserError, match="file"):
        create(tmp_path / "file", journals.created("a"), Clocks(), who="x")


def test_of_two_starts_at_once_exactly_one_wins(tmp_path: Path) -> None:
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from cake_tui.errors import UserError\n"
        "from cake_tui.store.clock import Clocks\n"
        "from cake_tui.store.session import create\n"
        "from tests.store import journals\n"
        "sys.stdin.readline()\n"
        "try:\n"
        "    create(Path(sys.argv[1]), journals.created('b'), Clocks(), who='x')\n"
        "except UserError as error:\n"
        "    print(error.exit_code, flush=True)\n"
        "else:\n"
        "    print('won', flush=True)\n"
        "    time.sleep(60)\n"
    )
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        starters = [
            subprocess.Popen(
                [sys.executable, "-c", program, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for _ in range(3)
        ]
        try:
            for starter in starters:
                assert starter.stdin is not None
                starter.stdin.write("\n")
                starter.stdin.flush()
            answers = sorted(starter.stdout.readline().strip() for starter in starters if starter.stdout is not None)
            assert answers == [str(BUSY), str(BUSY), "won"]
            assert [path.name for path in folder.iterdir()] == ["b"]
            assert len((folder / "b" / "journal.jsonl").read_bytes().splitlines()) == 1
        finally:
            for starter in starters:
                starter.kill()
                starter.communicate()


def test_texts_are_utf8_and_long_logs_keep_head_and_tail_with_the_true_size(session: Session) -> None:
    session.write(3, "kernel.c", "// µ 三 🎂\n")
    assert (session.candidate(3) / "kernel.c").read_bytes() == "// µ 三 🎂\n".encode()
    log = "first line\n" + "w" * 200_000 + "\nlast line"
    session.write(3, "build.log", log)
    kept = (session.candidate(3) / "build.log").read_text(encoding="utf-8")
    assert len(kept) < LOG_CHARACTERS + 200
    assert kept.startswith("first line")
    assert kept.endswith("last line")
    assert f"{len(log)} bytes in all" in kept
    source = "x" * 2_000_000
    session.write(3, "kernel.c", source)  # a source is never cut
    assert (session.candidate(3) / "kernel.c").stat().st_size == len(source)
    with pytest.raises(ValueError, match="file name"):
        session.write(3, "../kernel.c", "")


def test_best_is_whole_at_every_moment(session: Session) -> None:
    ended = threading.Event()
    seen: list[set[str]] = []

    def look() -> None:
        best = session.path / "best"
        while not ended.is_set():
            folder = os.open(best, os.O_RDONLY)
            try:
                contents = set()
                for name in ("candidate", "kernel.c", "schedule.txt"):
                    with os.fdopen(os.open(name, os.O_RDONLY, dir_fd=folder), encoding="utf-8") as file:
                        contents.add(file.read().strip())
                seen.append(contents)
            except OSError:
                continue  # swapped between listing and reading: the old folder is on its way out
            finally:
                os.close(folder)

    thread = threading.Thread(target=look)
    session.publish(0, {"kernel.c": "0", "schedule.txt": "0"})
    thread.start()
    for number in range(1, 60):
        session.publish(number, {"kernel.c": str(number), "schedule.txt": str(number)})
        assert session.published() == number
    ended.set()
    thread.join()
    assert seen
    assert all(len(contents) == 1 for contents in seen)
    assert not list(session.path.glob(".best*"))


def test_what_a_killed_publish_left_is_mended(session: Session) -> None:
    session.publish(4, {"kernel.c": "4"})
    (session.path / "best").rename(session.path / ".best-old")
    (session.path / ".best-new").mkdir()
    (session.path / ".snapshot.json.77.new").write_text("half", encoding="utf-8")
    session.mend()
    assert session.published() == 4
    assert not [path.name for path in session.path.iterdir() if path.name.startswith(".")]


def test_opening_a_held_session_is_refused_without_a_trace(session: Session) -> None:
    before = {path: path.read_bytes() for path in session.path.iterdir() if path.is_file()}
    began = time.monotonic()
    with pytest.raises(UserError) as refused:
        open_locked(session.path, who="y")
    assert time.monotonic() - began < 2
    assert refused.value.exit_code == BUSY
    assert {path: path.read_bytes() for path in session.path.iterdir() if path.is_file()} == before


def test_a_broken_session_toml_is_named(session: Session) -> None:
    (session.path / "session.toml").write_text("candidates = = 3", encoding="utf-8")
    with pytest.raises(UserError, match=r"session\.toml:1: ") as broken:
        read_document(session.path)
    assert broken.value.exit_code == DAMAGED


def bounded(session: Session, limit: int, whole: frozenset[int] = frozenset(), **lean: frozenset[int]) -> DiskBound:
    session.disk = DiskBound(session.path, limit, lambda: Keep(whole, **lean))
    return session.disk


def test_the_oldest_bulky_files_go_first_and_record_and_best_never(session: Session) -> None:
    limit = 2_000_000
    bounded(session, limit, frozenset({0, 5}))
    session.publish(5, {"kernel.c": "best" * 1000})
    record = session.journal_path.read_bytes()
    for number in range(120):
        session.write(number, "kernel.c", f"// {number}\n")
        session.write(number, "build.log", "w" * 20_000)
        session.write(number, "answer.prompt", "p" * 20_000)
        assert disk_bytes(session.path) <= limit
    assert session.journal_path.read_bytes() == record
    assert (session.path / "best" / "kernel.c").read_text(encoding="utf-8") == "best" * 1000
    for kept in (0, 5, 119):
        assert len(list(session.candidate(kept).iterdir())) == 3
    assert [path.name for path in session.candidate(1).iterdir()] == ["kernel.c"]


def test_whole_candidates_go_where_lean_ones_are_still_too_much(session: Session) -> None:
    limit = 1_000_000
    bounded(session, limit, lean=frozenset({2}))
    for number in range(100):
        session.write(number, "kernel.c", "s" * 30_000)
    assert disk_bytes(session.path) <= limit
    assert not session.candidate(1).exists()
    assert session.candidate(2).exists()
    assert session.candidate(99).exists()


def test_builds_are_a_cache_and_those_in_use_stay(session: Session) -> None:
    disk = bounded(session, 4_000_000)
    disk.in_use = lambda: frozenset({"hash0"})
    folder = session.build_store / "binaries" / "ha"
    folder.mkdir(parents=True)
    for number in range(400):
        (folder / f"hash{number}").write_bytes(b"b" * 16_000)
        os.utime(folder / f"hash{number}", (number, number))
    for number in range(RECOUNT_EVERY):  # an executor does not tell what it builds
        session.write(number, "build.log", "w")
    kept = {path.name for path in folder.iterdir()}
    assert "hash0" in kept
    assert "hash399" in kept
    assert "hash1" not in kept


@pytest.mark.parametrize(
    "bad", ["", ".", "..", "../x", "a/b", "a.b", "-x", "_x", " a", "a b", "a\nb", "a\x1b[31m", "a\0b", "ä", "x" * 65]
)  # fmt: skip
def test_a_bad_name_is_refused_in_one_line(bad: str) -> None:
    with pytest.raises(UserError) as refused:
        names.checked(bad)
    assert refused.value.exit_code == USAGE
    assert "\n" not in str(refused.value)


def test_a_missing_session_is_named_with_its_nearest(tmp_path: Path, session: Session) -> None:
    assert names.checked("first-Run_2") == "first-Run_2"
    assert names.find("a", tmp_path) == session.path
    assert names.all_names(tmp_path) == ("a",)
    with pytest.raises(UserError, match='did you mean "a"'):
        names.find("aa", tmp_path)
    assert names.free_name("kernel", tmp_path) == "kernel-1"
    (tmp_path / "kernel-1").mkdir()
    assert names.free_name("kernel", tmp_path) == "kernel-2"


def test_a_lock_outlives_its_rename_and_dies_with_its_process(tmp_path: Path, session: Session) -> None:
    other = Lock(session.path / "lock")
    assert not other.take()
    session.lock.release()
    assert other.take()
    other.release()
