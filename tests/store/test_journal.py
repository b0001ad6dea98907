"""The journal: stamped and synced appends, torn ends, full disks, and readers that nothing throws off."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cake_tui.model import event as ev
from cake_tui.model.measure import GateResult
from cake_tui.model.outcome import BuildFailed
from cake_tui.store.clock import Clocks
from cake_tui.store.journal import Journal, set_torn_end_aside
from cake_tui.store.reading import JournalReader, decode
from tests.store import journals

HEADER = {"v", "seq", "t", "mono", "boot", "kind"}


def noticed(text: str) -> ev.Noticed:
    return ev.Noticed(level="info", text=text)


def texts(path: Path) -> list[str]:
    return [event.text for event in JournalReader(path).read() if isinstance(event, ev.Noticed)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def test_every_line_has_the_header_and_reads_back_equal(path: Path) -> None:
    journal = Journal(path, Clocks())
    stamped = journal.append(journals.created(), *list(journals.unstamped(30))[1:])
    lines = path.read_bytes().splitlines()
    assert all(set(json.loads(line)) >= HEADER for line in lines)
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert tuple(JournalReader(path).read()) == stamped
    assert json.loads(lines[0])["t"].endswith("Z")


def test_numbering_goes_on_where_the_last_journal_stopped(path: Path) -> None:
    Journal(path, Clocks()).append(noticed("a"), noticed("b"))
    (third,) = Journal(path, Clocks(), seq=2).append(noticed("c"))
    assert third.seq == 3
    assert texts(path) == ["a", "b", "c"]


def test_a_record_cut_at_any_byte_is_set_aside_and_the_next_begins_a_line(tmp_path: Path) -> None:
    whole = tmp_path / "whole.jsonl"
    Journal(whole, Clocks()).append(noticed("one"), noticed("two"), noticed("µ 三 [/x]"))
    content = whole.read_bytes()
    start = content[:-1].rindex(b"\n") + 1
    for cut in range(start + 1, len(content)):
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(content[:cut])
        torn = set_torn_end_aside(path)
        if cut == len(content) - 1:  # only the line end was missing: the record is whole
            assert torn is None
            kept = ["one", "two", "µ 三 [/x]"]
        else:
            assert torn is not None
            assert (torn.line, torn.size_bytes) == (3, cut - start)
            assert str(path) in torn.text
            assert "line 3" in torn.text
            assert f"{cut - start} bytes" in torn.text
            assert torn.kept_in.read_bytes() == content[start:cut] + b"\n"
            kept = ["one", "two"]
        Journal(path, Clocks(), seq=len(kept)).append(noticed("next"))
        assert texts(path) == [*kept, "next"]
        assert all(json.loads(line) for line in path.read_bytes().splitlines())
        assert set_torn_end_aside(path) is None


def test_a_journal_that_is_one_torn_line_or_empty_or_missing(tmp_path: Path) -> None:
    (tmp_path / "torn").write_bytes(b'{"kind":"Noti')
    torn = set_torn_end_aside(tmp_path / "torn")
    assert torn is not None
    assert torn.line == 1
    assert (tmp_path / "torn").read_bytes() == b""
    (tmp_path / "empty").write_bytes(b"")
    assert set_torn_end_aside(tmp_path / "empty") is None
    assert set_torn_end_aside(tmp_path / "missing") is None


def test_a_torn_end_of_nul_bytes_is_set_aside(path: Path) -> None:
    Journal(path, Clocks()).append(noticed("kept"))
    with path.open("ab") as file:
        file.write(b"\0" * 5000)
    torn = set_torn_end_aside(path)
    assert torn is not None
    assert torn.size_bytes == 5000
    assert texts(path) == ["kept"]


def line_of(text: str, seq: int) -> bytes:
    event = {"kind": "Noticed", "v": 1, "seq": seq, "t": "", "mono": 1.0, "boot": "b", "level": "info", "text": text}
    return json.dumps(event).encode()


@pytest.mark.parametrize(
    ("damaged", "found"),
    [
        (b"\0" * 4096 + line_of("after NULs", 2), ["after NULs"]),
        (line_of("x", 2)[:40] + line_of("glued", 3), ["glued"]),
        (line_of("one", 2) + line_of("two", 3), ["one", "two"]),
        (line_of("half UTF-8", 2)[:-3] + b"\xe4\xb8", []),
        (b'{"kind":"FromTheFuture","v":1,"seq":2,"t":"","mono":1,"boot":"b","what":[1,{"a":2}]}', []),
        (line_of("newer", 2).replace(b'"v": 1', b'"v": 9'), []),
        (line_of("new field", 2).replace(b'"level"', b'"extra": {"x": [1]}, "level"'), ["new field"]),
        (b'{"kind":"Noticed","v":1,"seq":"two","level":7}', []),
        (b"[" * 100_000, []),
        (b"not json", []),
        (b'"a string"', []),
        (b"\xff\xfe\x00", []),
    ],
)
def test_damage_in_the_middle_loses_nothing_around_it(path: Path, damaged: bytes, found: list[str]) -> None:
    path.write_bytes(line_of("before", 1) + b"\n" + damaged + b"\n" + line_of("after", 9) + b"\n")
    assert texts(path) == ["before", *found, "after"]


def test_outcomes_inside_a_damaged_line_are_not_taken_for_events() -> None:
    ended = ev.CandidateEnded(candidate=3, round=1, outcome=BuildFailed(step="build", reason="no"), seq=7, v=1)
    from cake_tui.store.journal import encode

    assert decode(b"garbage " + encode(ended)) == (ended,)
    assert decode(b'garbage {"kind":"BuildFailed","step":"build","reason":"no"}') == ()


def test_a_reader_waits_for_the_end_of_a_line_still_being_written(path: Path) -> None:
    reader = JournalReader(path)
    assert list(reader.read()) == []
    with path.open("ab", buffering=0) as file:
        for text in ("a", "b"):
            line = line_of(text, 1) + b"\n"
            for byte in line[:-1]:
                file.write(bytes([byte]))
            assert list(reader.read()) == []
            file.write(b"\n")
            assert [event.text for event in reader.read() if isinstance(event, ev.Noticed)] == [text]
    assert reader.offset == path.stat().st_size


def test_a_replaced_journal_is_read_from_its_start(path: Path) -> None:
    path.write_bytes(line_of("old", 1) + b"\n" + line_of("old", 2) + b"\n")
    reader = JournalReader(path)
    assert len(list(reader.read())) == 2
    path.with_suffix(".new").write_bytes(line_of("new", 1) + b"\n")
    path.with_suffix(".new").replace(path)
    assert [event.seq for event in reader.read()] == [1]
    assert reader.restarts == 1


def test_lines_longer_than_a_read_are_whole(path: Path) -> None:
    long = "x" * (3 << 20)
    path.write_bytes(line_of(long, 1) + b"\n" + line_of("short", 2) + b"\n")
    assert texts(path) == [long, "short"]


@contextlib.contextmanager
def file_limit() -> Iterator[None]:
    """End the files of this process at 2,000 bytes: a disk that is full, without a disk.

    Not a fixture: pytest's own output may be a longer file, and it writes between a test's body and its fixtures' end.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


def test_an_append_without_space_is_taken_back_and_done_again(path: Path) -> None:
    told: list[tuple[Path, int]] = []
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]

    def on_full(full: Path, size: int, error: OSError) -> None:
        told.append((full, path.stat().st_size))
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))

    with file_limit():
        journal = Journal(path, Clocks(), on_full=on_full)
        journal.append(noticed("fits"))
        fits = path.stat().st_size
        journal.append(noticed("y" * 3000), noticed("z"))
    assert told == [(path, fits)]  # half of the first was written, and gone when it waited
    assert texts(path) == ["fits", "y" * 3000, "z"]
    assert [event.seq for event in JournalReader(path).read()] == [1, 2, 3]


def test_lines_that_a_sync_found_no_space_for_are_written_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on disks that give space only when they sync: the lines are gone again, and nothing says so but the sync."""
    told: list[int] = []
    journal = Journal(path, Clocks(), on_full=lambda full, size, error: told.append(size))
    journal.append(noticed("kept"))
    journal.settle()
    kept = path.stat().st_size
    fsync, fails = os.fsync, iter([True])

    def losing(descriptor: int) -> None:
        if next(fails, False):
            os.ftruncate(descriptor, kept)
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", losing)
    journal.append(noticed("lost"))
    journal.append(noticed("next"))
    journal.close()
    assert texts(path) == ["kept", "lost", "next"]
    assert len(told) == 1
    assert [event.seq for event in JournalReader(path).read()] == [1, 2, 3]


def test_an_event_is_synced_before_the_next_one_is_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync, seen = os.fsync, []

    def slow(descriptor: int) -> None:
        time.sleep(0.05)
        seen.append(len(texts(path)))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", slow)
    journal = Journal(path, Clocks())
    for text in "abc":
        journal.append(noticed(text))
    journal.close()
    assert seen == [1, 2, 3]


def test_an_append_without_space_and_nobody_to_wait_raises_and_leaves_the_journal(path: Path) -> None:
    journal = Journal(path, Clocks())
    journal.append(noticed("fits"))
    before = path.read_bytes()
    with file_limit(), pytest.raises(OSError, match="File too large"):
        journal.append(noticed("y" * 3000))
    assert path.read_bytes() == before
    journal.append(noticed("still works"))
    assert texts(path) == ["fits", "still works"]


def test_text_that_is_no_utf8_and_infinite_numbers_can_be_read_back(path: Path) -> None:
    result = GateResult("reject", float("-inf"), 0.0, 1, 1, False, os.fsdecode(b"caf\xe9"), float("inf"), 1.0)
    Journal(path, Clocks()).append(ev.GateEnded(candidate=1, against=0, seconds=1.0, result=result))
    (event,) = JournalReader(path).read()
    assert isinstance(event, ev.GateEnded)
    assert event.result.gain < -1e300
    assert event.result.reason == "caf�"


def test_an_event_that_could_not_be_read_back_is_refused(path: Path) -> None:
    journal = Journal(path, Clocks())
    with pytest.raises(ValueError, match="NoiseCalibrated"):
        journal.append(ev.NoiseCalibrated(pair_noise=float("nan"), pairs=1, against=0))
    journal.append(noticed("next"))
    assert texts(path) == ["next"]


def test_outside_text_is_kept_byte_for_byte(path: Path) -> None:
    text = "k.cu(12): error: mm<[/BM]> [/dim] [/ a[i][/*pad*/] \x1b[31m\r\n\0 " + "é" * 10_000
    Journal(path, Clocks()).append(noticed(text))
    assert texts(path) == [text]


def test_the_file_is_for_its_owner_alone(path: Path) -> None:
    Journal(path, Clocks()).append(noticed("x"))
    assert path.stat().st_mode & 0o777 == 0o600
