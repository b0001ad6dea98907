"""The terminal is as it was after every way of ending; hang-ups, stalls, pipes and odd sizes do no harm."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cake_tui.model import event as ev
from cake_tui.model.move import Move, Proposal
from cake_tui.model.outcome import Measured
from cake_tui.model.schedule import Schedule
from tests.engine.rest import own_seconds
from tests.tui.pty_terminal import ROOT, PtyTerminal
from tests.tui.sample import Sample

CRASHING = """
import sys
from cake_tui.tui.panes.log import Log
def body(self, view, width, height):
    secret = "s3cret"
    raise RuntimeError("a pane with a bug")
Log.body = body
from cake_tui.cli import main
sys.exit(main(sys.argv[1:]))
"""


def attach(sample: Sample, **options: object) -> PtyTerminal:
    """A viewer on a pty."""
    return PtyTerminal("attach", "first", "--sessions", str(sample.folder.parent), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("leave", "code"),
    [
        (lambda t: t.send("q"), 0),
        (lambda t: t.send("\x03"), 0),
        (lambda t: t.send("\x11"), 0),
        (lambda t: t.process.send_signal(signal.SIGTERM), 143),
        (lambda t: t.process.send_signal(signal.SIGHUP), 129),
        (lambda t: t.process.send_signal(signal.SIGINT), 130),
        (lambda t: t.process.send_signal(signal.SIGQUIT), 131),
    ],
    ids=["q", "ctrl+c", "ctrl+q", "SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT"],
)
def test_every_way_of_leaving_gives_the_terminal_back(
    locked: Sample, leave: Callable[[PtyTerminal], None], code: int
) -> None:
    with attach(locked) as terminal:
        terminal.wait_for("RUNNING")
        leave(terminal)
        assert terminal.exit_code() == code
        assert terminal.modes_restored()
        if code == 0:
            assert "cake-tui attach first" in terminal.text()


def test_a_crash_prints_two_lines_and_a_report_without_locals(locked: Sample, tmp_path: Path) -> None:
    arguments = ("attach", "first", "--sessions", str(locked.folder.parent))
    with PtyTerminal(*arguments, code=CRASHING, XDG_CACHE_HOME=str(tmp_path / "cache")) as terminal:
        assert terminal.exit_code() == 1
        assert terminal.modes_restored()
        said = terminal.text()
        assert "the run goes on" in said
        assert "a pane with a bug" in said
        assert "s3cret" not in said
    reports = list((tmp_path / "cache").rglob("*.log"))
    assert len(reports) == 1
    assert "secret =" not in reports[0].read_text().replace('    secret = "s3cret"', "")


@pytest.mark.parametrize("ignored", [False, True], ids=["plain", "SIGHUP ignored"])
def test_a_lost_terminal_ends_the_viewer_within_two_seconds(locked: Sample, ignored: bool) -> None:
    terminal = attach(locked, ignore_hangup=ignored)
    terminal.wait_for("RUNNING")
    terminal.hang_up()
    assert own_seconds(terminal.process.pid, lambda: terminal.process.poll() is not None) <= 2.0
    assert (locked.folder / "journal.jsonl").is_file()


def test_a_terminal_that_nobody_reads_does_not_keep_a_viewer_from_ending(locked: Sample) -> None:
    with attach(locked) as terminal:
        terminal.wait_for("RUNNING")
        for _ in range(8):  # fill the pty: redraws of the whole screen that nobody reads
            terminal.send("\x0c" * 20)
            time.sleep(0.2)
        terminal.process.send_signal(signal.SIGTERM)
        assert own_seconds(terminal.process.pid, lambda: terminal.process.poll() is not None) <= 2.5
        assert terminal.process.returncode in (143, -15)


def test_the_screen_is_current_within_two_seconds_after_a_stall(locked: Sample) -> None:
    with attach(locked) as terminal:
        terminal.wait_for("RUNNING")
        for _ in range(2):
            locked.run(4)
            time.sleep(1.0)
        locked.run(1)
        newest = f"#{locked.number - 1} "
        assert own_seconds(terminal.process.pid, lambda: terminal.shows(newest)) <= 2.5


def test_two_viewers_show_the_same_and_neither_disturbs_the_other(locked: Sample) -> None:
    with attach(locked) as one, attach(locked, columns=80, rows=24) as two:
        best = f"best #{locked.incumbent} "
        one.wait_for(best)
        two.wait_for(best)
        one.send("q")
        assert one.exit_code() == 0
        locked.run(2)
        two.wait_for("last event")
        assert two.process.poll() is None


def test_odd_sizes_never_crash(locked: Sample) -> None:
    rng = random.Random(3)
    sizes = [
        (1, 1),
        (300, 100),
        (40, 12),
        (2, 50),
        (300, 3),
        *((rng.randint(1, 300), rng.randint(1, 100)) for _ in range(12)),
    ]
    with attach(locked) as terminal:
        terminal.wait_for("RUNNING")
        for columns, rows in sizes:
            terminal.resize(columns, rows)
            terminal.read(0.12)
        terminal.resize(120, 40)
        terminal.read(1.0)
        terminal.send("\x0c")
        terminal.wait_for("best kernel")
        terminal.send("q")
        assert terminal.exit_code() == 0
        assert terminal.modes_restored()


@pytest.mark.parametrize("command", ["attach", "replay"])
def test_without_a_terminal_there_are_plain_lines_and_an_end(locked: Sample, command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cake_tui", command, "first", "--sessions", str(locked.folder.parent)],
        stdin=subprocess.DEVNULL, capture_output=True, cwd=ROOT, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b"\x1b" not in done.stdout + done.stderr
    assert b"accepted" in done.stdout or b"slower" in done.stdout


def test_a_dumb_terminal_gets_plain_lines(locked: Sample) -> None:
    with attach(locked, TERM="dumb") as terminal:
        assert terminal.exit_code() == 0
        assert b"\x1b" not in terminal.received


def test_a_screen_on_which_only_stderr_is_redirected_gets_plain_lines(locked: Sample, tmp_path: Path) -> None:
    code = "import os,sys; os.dup2(os.open(sys.argv[1], os.O_WRONLY|os.O_CREAT), 2); from pathlib import Path; "
    code += "from cake_tui.tui import view; sys.exit(view(Path(sys.argv[2])))"
    with PtyTerminal(str(tmp_path / "log"), str(locked.folder), code=code) as terminal:
        assert terminal.exit_code() == 0
        assert b"\x1b" not in terminal.received
        assert "best #" in terminal.text()


def test_nothing_is_sent_while_nothing_changes(locked: Sample) -> None:
    locked.put(ev.RequestTaken(id="r2", who="bob", what="pause"))
    with attach(locked) as terminal:
        terminal.wait_for("PAUSED by bob")
        terminal.settle(quiet=1.2)
        locked.beat(1, load=7.5, steal_pct=3.0)
        assert terminal.read(2.4) == b""
        terminal.send(" ")
        terminal.wait_for("SCREEN FROZEN")


def test_only_changed_cells_are_sent_and_the_screen_is_never_cleared(locked: Sample) -> None:
    with attach(locked) as terminal:
        terminal.wait_for("RUNNING")
        terminal.settle(quiet=0.5)
        locked.run(1)
        sent = terminal.read(1.8)
        assert b"\x1b[2J" not in sent
        assert len(sent) <= 8192
        assert b"pause" not in sent  # the footer stayed as it was


def test_the_terminals_own_size_wins_over_an_inherited_one(locked: Sample) -> None:
    with attach(locked, columns=80, rows=24, COLUMNS="200", LINES="60") as terminal:
        terminal.wait_for("RUNNING")
        terminal.settle(quiet=0.5)
        lines = terminal.text().splitlines()
        assert lines[23].startswith(" p pause")
        assert "weight" in terminal.text()
        terminal.resize(100, 30)
        terminal.process.send_signal(signal.SIGWINCH)
        until = time.monotonic() + 5
        while not terminal.text().splitlines()[-1].startswith(" p pause") and time.monotonic() < until:
            terminal.read(0.1)
        assert len(terminal.text().splitlines()) == 30


def test_the_first_screen_is_sent_once_and_is_at_most_fifty_kilobytes(locked: Sample) -> None:
    """Blank frames before it would be most of the bytes at 200 columns and 60 rows."""
    with attach(locked, columns=200, rows=60) as terminal:
        terminal.wait_for("best #")
        terminal.settle(quiet=0.3)
        written = re.sub(rb"\x1b(\[[0-9;?$]*[A-Za-z]|\][^\x07]*\x07)", b"", terminal.received).decode()
        assert len(written) <= 1.5 * 200 * 60
        assert len(terminal.received) <= 50_000


def test_the_first_screen_of_a_usual_terminal_is_small(locked: Sample) -> None:
    with attach(locked) as terminal:
        terminal.wait_for("RUNNING")
        terminal.settle(quiet=0.7)
        assert len(terminal.received) <= 25_000


def test_sixteen_colours_are_enough_and_none_are_needed(locked: Sample) -> None:
    with attach(locked) as terminal:
        terminal.wait_for("RUNNING")
        terminal.read(0.7)
        assert b"\x1b[38;2" not in terminal.received
        assert b"38;5" not in terminal.received
    with attach(locked, NO_COLOR="1") as terminal:
        terminal.wait_for("● accepted")
        assert not re.search(rb"\x1b\[(?:\d+;)*[349][0-7](?:;\d+)*m", terminal.received)


def test_importing_the_viewer_imports_no_textual_and_showing_it_no_numpy(locked: Sample) -> None:
    code = "import sys, cake_tui.tui; assert 'textual' not in sys.modules; import cake_tui.tui.app; "
    code += "cake_tui.tui.app.load_panes(); assert 'numpy' not in sys.modules, 'numpy'"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)


def test_pausing_by_key_puts_one_request_into_the_inbox(locked: Sample) -> None:
    with attach(locked, CAKE_TUI_WHO="sam") as terminal:
        terminal.wait_for("RUNNING")
        terminal.send("p")
        terminal.wait_for("pause: sent")
    files = [path for path in (locked.folder / "inbox").iterdir() if path.suffix == ".json"]
    assert len(files) == 1
    assert b'"who":"sam"' in files[0].read_bytes()
    assert files[0].stat().st_mode & 0o077 == 0


def test_wide_and_joined_characters_leave_the_columns_where_they_are(locked: Sample) -> None:
    text = "日本語 e\u0301 👩\u200d👩\u200d👧 🇩🇪 👍🏽 \u202eabc"
    move = Move(text, ((text, text),))
    for _ in range(12):
        proposal = Proposal(locked.incumbent, (move,), text, "llm", text)
        outcome = Measured(verdict="slower", avg_us=1500.0, reason=text)
        schedule = Schedule("packed")
        locked.put(ev.Planned(candidate=locked.number, round=99, proposal=proposal, level="micro", schedule=schedule,
                              predicted_us=None, source_sha256=""))  # fmt: skip
        locked.put(ev.Coarse(candidate=locked.number, against=0, seconds=1, avg_us=1500.0, runs_us=(), gain=5.0))
        locked.put(ev.CandidateEnded(candidate=locked.number, round=99, outcome=outcome))
        locked.number += 1
    with attach(locked) as terminal:
        terminal.wait_for("日本語")
        terminal.settle(quiet=0.5)
        gap = terminal.text().splitlines()[16].index("─ 2 feedback") - 1
        cells = [terminal.screen.buffer[row][gap].data for row in range(16, 29)]
        assert "".join(cells).strip() == ""
        assert any("日" in terminal.screen.buffer[row][column].data for row in range(16, 29) for column in range(gap))
