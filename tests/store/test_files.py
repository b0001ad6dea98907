"""Files that are whole or not there, logs that stay bounded and survive deletion, clocks and the gaps in them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cake_tui.model.measure import Clock
from cake_tui.store.clock import Clocks, GapWatch, utc_text
from cake_tui.store.files import head_and_tail, write_whole
from cake_tui.store.rotation import RotatingFile
from cake_tui.store.telemetry import Beat, BeatReader, encode
from tests.engine.scripted import open_files


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "state"
    write_whole(path, b"old")
    assert path.stat().st_mode & 0o777 == 0o600
    path.with_name("folder").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_whole(path.with_name("folder"), b"new")
    assert path.read_bytes() == b"old"
    assert sorted(found.name for found in tmp_path.iterdir()) == ["folder", "state"]


def test_head_and_tail_tell_the_true_size_in_bytes() -> None:
    assert head_and_tail("short", 10) == "short"
    text = "ä" * 50 + "ö" * 1000 + "ü" * 50
    kept = head_and_tail(text, 100)
    assert kept.startswith("ä" * 50 + "\n")
    assert kept.endswith("\n" + "ü" * 50)
    assert "2200 bytes in all" in kept
    assert "1000 characters left out" in kept


def test_a_log_rotates_while_it_is_written(tmp_path: Path) -> None:
    log = RotatingFile(tmp_path / "engine.log", 1000)
    for number in range(500):
        log.write(f"line {number:04}")
    assert (tmp_path / "engine.log").stat().st_size <= 1000
    assert (tmp_path / "engine.log.1").stat().st_size <= 1000
    assert len(list(tmp_path.iterdir())) == 2
    lines = (tmp_path / "engine.log.1").read_text(encoding="utf-8") + (tmp_path / "engine.log").read_text(
        encoding="utf-8"
    )
    assert lines.splitlines()[-1] == "line 0499"
    assert len(lines.splitlines()) >= 100


def test_a_deleted_log_is_written_anew_and_its_space_is_free(tmp_path: Path) -> None:
    opened: list[int] = []
    log = RotatingFile(tmp_path / "engine.log", 100_000, opened.append)
    log.write("before")
    (tmp_path / "engine.log").unlink()
    log.write("after")
    assert (tmp_path / "engine.log").read_text(encoding="utf-8") == "after\n"
    assert len(opened) == 2
    assert not [path for path in open_files(os.getpid()) if "engine.log (deleted)" in path]


def test_a_log_whose_folder_is_gone_never_raises(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    log = RotatingFile(tmp_path / "in" / "engine.log", 100)
    (tmp_path / "in" / "engine.log").unlink()
    (tmp_path / "in").rmdir()
    log.write("nobody hears this")
    assert log.lost == 1


def test_beats_are_read_as_they_come_and_across_a_rotation(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    file = RotatingFile(path, 100_000)
    reader = BeatReader(path, first_bytes=500)

    def write(*seconds: int) -> None:
        for second in seconds:
            file.write(encode(Beat(t=utc_text(second), mono=float(second), boot="b", clock=Clock(mono=1.0, load=0.5))))

    assert reader.read() == []
    write(*range(40))
    assert [beat.mono for beat in reader.read()][-2:] == [38.0, 39.0]  # its end, whole lines alone
    with path.open("ab") as torn:
        torn.write(b'{"t":"half')
    assert reader.read() == []
    with path.open("ab") as torn:
        torn.write(b"\n")
    write(40)
    path.rename(tmp_path / "telemetry.jsonl.1")
    assert reader.read() == []
    write(41, 42)
    assert [beat.mono for beat in reader.read()] == [41.0, 42.0]
    assert BeatReader(tmp_path / "nowhere").read() == []


class Hands(Clocks):
    """Clocks with hands that tests move."""

    def __init__(self) -> None:
        self.wall_s, self.mono_s = 1e9, 100.0

    def wall(self) -> float:
        return self.wall_s

    def mono(self) -> float:
        return self.mono_s

    def pass_(self, seconds: float, wall: float | None = None) -> None:
        self.mono_s += seconds
        self.wall_s += seconds if wall is None else wall


def test_a_wall_clock_that_steps_is_a_gap_of_that_much() -> None:
    hands = Hands()
    watch = GapWatch(hands, 1.0)
    for step in (36_000.0, -7200.0):
        hands.pass_(1.0, 1.0 + step)
        watch.look(beat=True)
        (gap,) = watch.take()
        assert gap.what == "wall"
        assert gap.seconds == pytest.approx(step)
    hands.pass_(1.0, 1.3)  # a clock that is steered is no gap
    watch.look(beat=True)
    assert watch.take() == []


def test_a_stopped_process_is_a_gap_whoever_notices_first() -> None:
    hands = Hands()
    watch = GapWatch(hands, 1.0)
    hands.pass_(1.0)
    watch.look(beat=True)
    hands.pass_(120.0)
    watch.look(beat=False)  # the loop, before the heartbeat's thread ran again
    watch.look(beat=True)
    (gap,) = watch.take()
    assert (gap.what, gap.seconds) == ("stopped", 119.0)


def test_a_late_heartbeat_is_no_gap_unless_the_process_was_continued() -> None:
    hands = Hands()
    watch = GapWatch(hands, 1.0)
    hands.pass_(2.9)
    watch.look(beat=True)
    assert watch.take() == []
    hands.pass_(2.9)
    watch.continued()
    watch.look(beat=True)
    assert [gap.what for gap in watch.take()] == ["stopped"]


def test_a_continue_that_is_told_after_the_heartbeat_woke_still_counts() -> None:
    hands = Hands()
    watch = GapWatch(hands, 0.1)
    hands.pass_(1.5)
    watch.look(beat=True)
    assert watch.take() == []
    watch.continued()
    hands.pass_(0.1)
    watch.look(beat=True)
    (gap,) = watch.take()
    assert (gap.what, gap.seconds) == ("stopped", pytest.approx(1.4))
    hands.pass_(0.1)
    watch.continued()
    watch.look(beat=True)
    assert watch.take() == []


def test_stamps_are_utc_whatever_the_clock_says() -> None:
    assert utc_text(0.0) == "1970-01-01T00:00:00.000Z"
    assert utc_text(1e20).endswith("Z")
