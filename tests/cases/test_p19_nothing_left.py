"""Pitfalls 19 and 31: whatever way it ends nothing is left behind; without a terminal there are plain lines."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from cake_tui.model import event as ev
from tests.cases.doubling import make_kernel, make_script, settings
from tests.cases.shell import SLOW, Shell, all_gone, descendants, ended, events, screen, variations
from tests.engine.scripted import folded, gone, until

SHARED = (Path("/dev/shm"), Path(tempfile.gettempdir()))


def marked(text: str) -> list[int]:
    """Return the processes whose environment mentions a text: all that a shell started, and what those started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if text.encode() in path.read_bytes() and not gone(int(path.parent.name)):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def shared() -> set[str]:
    return {path.name for folder in SHARED for path in folder.glob("*") if "pytest" not in path.name}


def clean(shell: Shell, session: Path) -> None:
    """No process, no temporary file, nothing half-made in the session's folder."""
    until(lambda: not marked(str(shell.folder)), 20)
    assert shell.left_behind() == []
    assert not list(shell.sessions.glob(".*"))
    scraps = [path for path in session.rglob("*") if path.name.endswith((".new", ".part", ".tmp"))]
    assert scraps == []
    for name in ("building", "evaluators", "scratch"):
        assert not list((session / "build" / name).glob("*")), name


WAYS: dict[str, Callable[[Shell, int], object]] = {
    "stop": lambda shell, pid: shell.here("stop", "a"),
    "SIGTERM": lambda shell, pid: os.kill(pid, signal.SIGTERM),
    "SIGINT": lambda shell, pid: os.kill(pid, signal.SIGINT),
    "SIGTERM twice": lambda shell, pid: [os.kill(pid, signal.SIGTERM) for _ in range(2)],
}
DEVICES = {
    "compiling": "ridge,compile_s=30",
    "a compiler that hangs": "ridge,compile_hangs=1,compile_s=0.05",
    "checking": "ridge,check_s=30",
    "timing": "ridge,series_s=30",
}


@pytest.mark.parametrize("way", variations(WAYS, 2))
@pytest.mark.parametrize("step", variations(DEVICES, 2))
def test_in_the_middle_of_each_step(shell: Shell, way: str, step: str) -> None:
    session = shell.start(device=DEVICES[step])
    pid = shell.pid()
    until(lambda: events(session, ev.Planned))
    if step in ("checking", "timing"):
        until(lambda: events(session, ev.BuildEnded))
    until(lambda: descendants(pid))
    children = descendants(pid)
    WAYS[way](shell, pid)
    until(all_gone([pid, *children]), 20)
    if way == "SIGTERM twice":  # which ends it on the spot, as kill -9 does: the next engine clears up
        shell.apart("resume", "a")
        shell.here("stop", "a")
    clean(shell, session)


@pytest.mark.parametrize("way", variations(["stop", "SIGINT"]))
def test_a_run_that_is_ended_before_its_baseline_has_a_time_goes_on(shell: Shell, way: str) -> None:
    session = shell.start(device="ridge,compile_s=1", candidates=3)
    pid = shell.pid()
    until(lambda: events(session, ev.Planned))
    WAYS[way](shell, pid)
    until(all_gone([pid]), 20)
    assert [row.outcome for row in folded(session).rows] == [None]
    shell.apart("resume", "a", "--headless")
    history = folded(session)
    assert (history.state, history.rows[0].outcome) == ("done", "Measured")
    clean(shell, session)


@pytest.mark.parametrize("step", variations(DEVICES, 2))
def test_after_kill_9_no_process_is_left_and_a_resume_clears_up(shell: Shell, step: str) -> None:
    session = shell.start(device=DEVICES[step])
    pid = shell.pid()
    until(lambda: events(session, ev.Planned))
    until(lambda: descendants(pid))
    os.kill(pid, signal.SIGKILL)
    until(lambda: not marked(str(shell.folder)), 20)
    shell.apart("resume", "a")
    shell.here("stop", "a")
    clean(shell, session)


@pytest.mark.cc
@pytest.mark.parametrize("way", variations([signal.SIGKILL, signal.SIGTERM]))
def test_on_this_processor(shell: Shell, way: signal.Signals) -> None:
    before = shared()
    middle = "#if MODE == 1\nstatic volatile int flag; while (!flag) { }\n#endif"
    make_kernel(shell, middle)
    agent = make_script(shell, ("set_MODE(1)", "hangs", 0))
    shell.apart("run", "two", "--backend", "cpu", "--name", "a", "--agent", agent, *settings("run_s=30"))
    session = shell.sessions / "a"
    until(lambda: any(one.candidate == 1 for one in events(session, ev.BuildEnded)))
    pid = shell.pid()
    os.kill(pid, way)
    until(lambda: not marked(str(shell.folder)), 20)
    mine = {name for name in shared() - before if "cake-tui-case" not in name}
    assert not {name for name in mine if name.startswith(("cake-tui-trial", "cake-tui-probe"))}
    assert shell.left_behind() == []
    assert not list((shell.folder / "locks").glob("*.part"))
    good = make_script(shell, ("set_MODE(2)", "good", 0), name="good.toml")
    shell.apart("resume", "a", "--headless", "--agent", good, "--set", "run_s=0.5")
    clean(shell, session)


def test_a_run_that_is_done_leaves_nothing(shell: Shell) -> None:
    session = shell.headless(device=SLOW, candidates=3)
    clean(shell, session)


def test_without_a_terminal_there_are_plain_lines_and_exit_codes(shell: Shell) -> None:
    """Pitfall 31."""
    out, err = shell.apart("run", "--backend", "simulated", "--device", SLOW, "--name", "a")
    assert "attach a" in out
    assert err == ""
    session = shell.sessions / "a"
    until(lambda: ended(session) >= 1)
    for words in (("attach", "a"), ("status", "a"), ("list",), (), ("tail", "a"), ("show", "a"), ("replay", "a")):
        out, _ = shell.apart(*words)
        assert out
        assert out.isprintable() or all(line.isprintable() for line in out.splitlines())
    shell.here("stop", "a")


@pytest.mark.parametrize("term", variations(["dumb", "", "unknown-terminal", "linux"]))
def test_a_terminal_that_cannot_draw(shell: Shell, term: str) -> None:
    with screen(shell, "run", "--backend", "simulated", "--device", SLOW, "--name", "a", TERM=term) as terminal:
        if term in ("dumb", ""):
            until(lambda: terminal.read(0.1) and terminal.process.poll() is not None)
            assert terminal.process.returncode == 0
            assert b"\x1b" not in terminal.read(0.2)
            assert b"attach a" in terminal.shown
        else:
            until(lambda: b"RUNNING" in terminal.read(0.1))
            os.write(terminal.master, b"q")
            until(lambda: terminal.read(0.1) and terminal.process.poll() is not None)
            assert terminal.process.returncode == 0
    until(lambda: ended(shell.sessions / "a") >= 1)
    shell.here("stop", "a")


@pytest.mark.parametrize("lines", variations(["| head -n 1", "| true", "</dev/null >/dev/null", "2>&1 | cat"]))
def test_pipes_that_close_early_end_quietly(shell: Shell, recorded: Path, lines: str) -> None:
    words = " ".join(f"'{word}'" for word in shell.words("attach", "a"))
    done = subprocess.run(
        ["bash", "-c", f"{words} {lines}; exit ${{PIPESTATUS[0]}}"], cwd=shell.folder, env=shell.environment,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 141)
    assert b"Traceback" not in done.stderr
    assert b"\x1b" not in done.stdout
