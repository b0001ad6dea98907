"""A04, pitfalls 1 and 2: whatever becomes of a terminal, a run goes on or ends in order, as the documentation says."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from cake_tui.model import event as ev
from cake_tui.model.history import History
from cake_tui.store.telemetry import BeatReader
from tests.cases.shell import ROOT, SLOW, Shell, all_gone, descendants, ended, events, gone, log_of, screen, variations
from tests.engine.scripted import folded, until
from tests.tui.pty_terminal import PtyTerminal

RUN = ("run", "--backend", "simulated", "--device", SLOW, "--name", "a", "--set", "heartbeat=0.1")
HEADLESS = (*RUN, "--headless")


def evaluating(session: Path, number: int) -> None:
    """Wait until a candidate is between its first and its last event."""
    until(lambda: any(event.candidate == number for event in events(session, ev.BuildEnded)))


def in_flight(history: History) -> list[int]:
    return [row.number for row in history.in_flight()]


def test_headless_ends_in_order_when_its_terminal_hangs_up(shell: Shell) -> None:
    session = shell.sessions / "a"
    with screen(shell, *HEADLESS) as terminal:
        evaluating(session, 3)
        left = descendants(terminal.process.pid)
        assert b"baseline" in terminal.read(0.2)
        terminal.hang_up()
        assert terminal.process.wait(60) == 129
    until(all_gone(left))
    history = folded(session)
    assert (history.state, history.state_reason, history.exit_code) == ("stopped", "SIGHUP", 129)
    assert not in_flight(history)
    assert any(row.outcome == "Interrupted" for row in history.rows)
    assert shell.json("status", "a")["state"] == "stopped"
    best = history.incumbent
    shell.apart("resume", "a", "--headless", "--candidates", str(history.effective + 2))
    after = folded(session)
    assert after.effective >= history.effective + 2
    assert after.rows[best or 0] == history.rows[best or 0]


def go_on(shell: Shell, session: Path, pid: int) -> None:
    """Three more candidates are evaluated and recorded, and a new terminal shows them."""
    count = ended(session)
    until(lambda: ended(session) >= count + 3)
    assert not gone(pid)
    assert "Traceback" not in log_of(session)
    newest = events(session, ev.CandidateEnded)[-2].candidate
    assert f"#{newest} " in log_of(session)
    with screen(shell, "attach", "a") as other:
        until(lambda: b"RUNNING" in other.read(0.1))
    seqs = [event.seq for event in events(session, ev.Event)]
    assert seqs == list(range(1, len(seqs) + 1))


def test_under_nohup_headless_goes_on_without_its_terminal(shell: Shell) -> None:
    session = shell.sessions / "a"
    with screen(shell, *HEADLESS, ignore_hup=True) as terminal:
        evaluating(session, 1)
        terminal.hang_up()
        go_on(shell, session, terminal.process.pid)
        terminal.process.terminate()
        assert terminal.process.wait(60) == 143


@pytest.mark.parametrize("ignored", variations([False, True]))
def test_the_run_behind_a_viewer_never_notices(shell: Shell, ignored: bool) -> None:
    """Pitfall 2: the terminal that started it and one that only looked on go away."""
    session = shell.sessions / "a"
    with screen(shell, *RUN, ignore_hup=ignored) as starter:
        until(lambda: b"RUNNING" in starter.read(0.1))
        evaluating(session, 1)
        pid = shell.pid()
        with screen(shell, "attach", "a", ignore_hup=ignored) as looker:
            until(lambda: b"RUNNING" in looker.read(0.1))
            for terminal in (looker, starter):
                terminal.hang_up()
                assert terminal.process.wait(60) in (129, -signal.SIGHUP)
    go_on(shell, session, pid)
    assert shell.pid() == pid
    shell.here("stop", "a")


def test_a_hang_up_sent_to_a_detached_engine_means_nothing(shell: Shell) -> None:
    session = shell.start()
    pid = shell.pid()
    os.kill(pid, signal.SIGHUP)
    go_on(shell, session, pid)
    assert os.getsid(pid) not in (os.getsid(0), 0)
    for descriptor in (0, 1, 2):
        assert "pts" not in str(Path(f"/proc/{pid}/fd/{descriptor}").readlink())


OUTPUTS = {
    "all closed": "exec <&- >&- 2>&-",
    "a full device": "exec >/dev/full 2>/dev/full",
    "closed": "exec >&- 2>&-",
    "a reader that left": "exec > >(true) 2>&1",
    "a file": "exec >out 2>&1",
}


@pytest.mark.parametrize("output", variations(OUTPUTS))
def test_whatever_standard_output_is(shell: Shell, output: str) -> None:
    words = " ".join(f"'{word}'" for word in shell.words(*HEADLESS, "--candidates", "3"))
    done = subprocess.run(
        ["bash", "-c", f"{OUTPUTS[output]}; {words}"], cwd=shell.folder, env=shell.environment, timeout=60, check=False
    )
    assert done.returncode == 0
    session = shell.sessions / "a"
    assert folded(session).state == "done"
    assert "Traceback" not in log_of(session)
    assert "Exception" not in log_of(session)


@pytest.mark.parametrize("output", variations(["all closed", "a full device", "closed"]))
def test_a_detached_run_starts_whatever_standard_output_is(shell: Shell, output: str) -> None:
    words = " ".join(f"'{word}'" for word in shell.words(*RUN))
    subprocess.run(
        ["bash", "-c", f"{OUTPUTS[output]}; {words}"], cwd=shell.folder, env=shell.environment, timeout=60, check=False
    )
    session = shell.sessions / "a"
    until(lambda: ended(session) >= 1)
    assert "Traceback" not in log_of(session)
    shell.here("stop", "a")


SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


@pytest.mark.parametrize("number", variations(SIGNALS))
def test_each_signal_ends_headless_in_order(shell: Shell, number: signal.Signals) -> None:
    session = shell.sessions / "a"
    process = shell.popen(*HEADLESS, stdout=subprocess.DEVNULL)
    evaluating(session, 0)
    left = descendants(process.pid)
    process.send_signal(number)
    assert process.wait(60) == 128 + number
    until(all_gone(left))
    assert folded(session).state_reason == number.name
    assert in_flight(folded(session)) in ([], [0])  # a baseline goes on at the resume, all else was interrupted
    assert shell.left_behind() == []
    shell.apart("resume", "a", "--headless", "--candidates", "2")
    assert folded(session).state == "done"
    assert not in_flight(folded(session))


@pytest.mark.parametrize("number", variations(SIGNALS))
def test_a_signal_before_there_is_a_session_leaves_nothing(shell: Shell, number: signal.Signals) -> None:
    process = shell.popen(*HEADLESS, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    time.sleep(0.25)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (128 + number, -number), err
    assert b"Traceback" not in err or number is signal.SIGINT
    found = list(shell.sessions.glob("*")) if shell.sessions.exists() else []
    assert all(path.name == "a" and (path / "journal.jsonl").stat().st_size for path in found)
    assert not list(shell.sessions.glob(".*"))


def test_a_viewer_that_nobody_reads_holds_nothing_up(shell: Shell, soak_share: float) -> None:
    """Pitfall 1: a frozen link; the heart beats on, and the screen is current soon after it thaws."""
    session = shell.sessions / "a"
    with screen(shell, *RUN) as terminal:
        until(lambda: b"RUNNING" in terminal.read(0.1))
        count, began = ended(session), time.monotonic()
        time.sleep(max(1.5, 60 * soak_share))
        assert ended(session) > count
        beats = [beat.mono for beat in BeatReader(session / "telemetry.jsonl", 4 << 20).read() if beat.mono > began]
        steps = sorted(later - earlier for earlier, later in itertools.pairwise(beats))
        assert steps[len(steps) // 2] == pytest.approx(0.1, rel=0.1)
        shell.here("pause", "a")
        until(lambda: b"PAUSED" in terminal.read(0.1)[-200_000:])
        assert terminal.process.poll() is None


def test_read_again_the_screen_is_current_at_once(shell: Shell, soak_share: float) -> None:
    """Pitfall 1, the viewer's side: what happened meanwhile is there within two seconds, not screen after screen."""
    session = shell.start()
    with PtyTerminal("attach", "a", "--sessions", str(shell.sessions)) as terminal:
        terminal.wait_for("RUNNING")
        time.sleep(max(2.0, 60 * soak_share))
        newest, began = ended(session), time.monotonic()
        shown = 0
        while shown < newest and time.monotonic() - began < 10:
            terminal.read(0.1)
            shown = max(map(int, re.findall(r"#(\d+) ", terminal.text())), default=0)
        assert shown >= newest
        if soak_share == 1.0:  # on a machine of its own
            assert time.monotonic() - began <= 2.0
    shell.here("stop", "a")


def test_a_stopped_engine_is_told_from_a_quiet_one(shell: Shell) -> None:
    """Pitfall 23: the process is there and holds its lock, and does nothing."""
    shell.start(set="heartbeat=0.2")
    pid = shell.pid()
    with PtyTerminal("attach", "a", "--sessions", str(shell.sessions)) as terminal:
        terminal.wait_for("RUNNING")
        os.kill(pid, signal.SIGSTOP)
        try:
            terminal.wait_for("STALE")
            assert "engine silent for" in terminal.text()
        finally:
            os.kill(pid, signal.SIGCONT)
        terminal.wait_for("RUNNING")
        os.kill(pid, signal.SIGKILL)
        terminal.wait_for("ENGINE GONE")
        assert "cake-tui resume a" in terminal.text()


def test_the_documentation_says_which_of_the_two_happens() -> None:
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert "an engine that outlives the terminal" in text
    assert "hanging up on it stops it in order (exit 129)" in text
