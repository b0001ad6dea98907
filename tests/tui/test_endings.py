"""Stopped, continued, disturbed, unread, held up: the screen comes back whole, and leaving takes two seconds."""

from __future__ import annotations

import os
import signal
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine.rest import own_seconds
from tests.tui.pty_terminal import PtyTerminal
from tests.tui.sample import Sample
from tests.tui.test_terminal import attach


def state_of(process: int) -> str:
    """The process's state letter, T where it is stopped."""
    return Path(f"/proc/{process}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]


def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def still(terminal: PtyTerminal) -> str:
    """The panes' text once nothing moves; the first line holds ages."""
    terminal.settle(quiet=0.4)
    return "\n".join(terminal.text().splitlines()[3:])


def quiet(sample: Sample) -> PtyTerminal:
    """A viewer of a session in which nothing happens any more."""
    terminal = PtyTerminal("replay", "first", "--sessions", str(sample.folder.parent))
    terminal.wait_for("REPLAY")
    return terminal


def test_stopped_by_the_terminal_it_gives_it_back_and_continues_with_a_whole_screen(sample: Sample) -> None:
    with quiet(sample) as terminal:
        before = still(terminal)
        terminal.process.send_signal(signal.SIGTSTP)
        until(lambda: state_of(terminal.process.pid) == "T")
        terminal.read(0.2)
        assert terminal.modes_restored()
        terminal.screen.reset()
        terminal.process.send_signal(signal.SIGCONT)
        terminal.wait_for("REPLAY")
        assert still(terminal) == before
        assert not terminal.modes_restored()
        terminal.send("q")
        assert terminal.exit_code() == 0
        assert terminal.modes_restored()


def test_stopped_without_notice_it_takes_the_terminal_again(sample: Sample) -> None:
    """A shell that regains a terminal sets its own modes; nobody told the viewer."""
    with quiet(sample) as terminal:
        before = still(terminal)
        raw = termios.tcgetattr(terminal.slave)
        terminal.process.send_signal(signal.SIGSTOP)
        until(lambda: state_of(terminal.process.pid) == "T")
        termios.tcsetattr(terminal.slave, termios.TCSANOW, terminal.before)
        terminal.screen.reset()
        terminal.process.send_signal(signal.SIGCONT)
        terminal.wait_for("REPLAY")
        assert still(terminal) == before
        assert termios.tcgetattr(terminal.slave) == raw
        terminal.send("[")
        terminal.read(0.5)
        assert still(terminal) != before
        terminal.send("q")
        assert terminal.exit_code() == 0
        assert terminal.modes_restored()


@pytest.mark.parametrize(
    ("opened", "redraw"),
    [("", "\x0c"), ("?", "\x0c"), ("", "\x1b[O\x1b[I")],
    ids=["ctrl+l", "ctrl+l in a dialog", "focus"],
)
def test_what_another_program_wrote_over_the_screen_goes(sample: Sample, opened: str, redraw: str) -> None:
    with quiet(sample) as terminal:
        still(terminal)
        terminal.send(opened)
        before = still(terminal)
        terminal.scribble(b"\x1b[H" + b"going down now!\r\n" * 30)
        assert still(terminal) != before
        terminal.send(redraw)
        assert still(terminal) == before


def test_bytes_that_are_no_text_are_not_the_end(sample: Sample) -> None:
    with quiet(sample) as terminal:
        for noise in (b"\xff\xfe\xc3", b"\x1b[<99;", b"\x9b\xf0\x9f", b"\x1b]52;c;" + b"A" * 500 + b"\x07", b"\x00"):
            os.write(terminal.master, noise)
            terminal.read(0.2)
        terminal.read(0.5)
        assert terminal.process.poll() is None
        terminal.send("\x1b")
        terminal.settle(quiet=0.3)
        terminal.send("?")
        terminal.wait_for("esc close")
        terminal.send("\x03")
        assert terminal.exit_code() == 0
        assert terminal.modes_restored()


@pytest.mark.parametrize("key", ["q", "\x03"], ids=["q", "ctrl+c"])
def test_leaving_a_terminal_that_nobody_reads(locked: Sample, key: str) -> None:
    with attach(locked) as terminal:
        terminal.wait_for("RUNNING")
        for _ in range(4):  # the writer has two screens on their way, and more wait
            terminal.send("\x0c" * 20)
            time.sleep(0.1)
        terminal.send(key)
        assert own_seconds(terminal.process.pid, lambda: terminal.process.poll() is not None) <= 2.5
        assert terminal.process.returncode == 0
        # Its screen stays as it is: no byte finds room. What needs no room is given back.
        assert termios.tcgetattr(terminal.slave) == terminal.before


def test_a_terminal_that_is_read_again_gets_the_whole_screen_and_not_all_that_was_missed(locked: Sample) -> None:
    with attach(locked) as terminal:
        terminal.wait_for("RUNNING")
        for _ in range(5):
            terminal.send("\x0c" * 20)  # a megabyte or two
            time.sleep(0.1)
        terminal.send("?")
        received = len(terminal.received)
        terminal.wait_for("everywhere")
        terminal.send("\x1b")
        terminal.settle(quiet=0.6)
        assert len(terminal.received) - received <= 250_000
        assert all(text in terminal.text() for text in ("RUNNING", "best kernel", "7 log"))


def test_ctrl_c_leaves_a_viewer_that_a_file_holds_up(locked: Sample) -> None:
    with attach(locked) as terminal:
        terminal.wait_for("RUNNING")
        path = locked.folder / "journal.jsonl"
        path.unlink()
        os.mkfifo(path)  # what a network file system does that went away
        terminal.read(1.5)
        terminal.send("\x03")
        assert own_seconds(terminal.process.pid, terminal.has_ended) <= 2.5
        assert terminal.exit_code() == 0
        assert terminal.modes_restored()


@pytest.mark.parametrize("opened", ["i", "\x10"], ids=["inject", "commands"])
def test_ctrl_c_leaves_from_every_dialog(locked: Sample, opened: str) -> None:
    with attach(locked) as terminal:
        terminal.wait_for("RUNNING")
        terminal.send(opened)
        terminal.read(0.6)
        terminal.send("\x03")
        assert terminal.exit_code() == 0
        assert terminal.modes_restored()
