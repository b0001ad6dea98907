"""Around sessions: mistakes, other sessions, the machine, tail, locales, terminals and viewers that freeze."""

from __future__ import annotations

import fcntl
import itertools
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from cake_tui import registry
from cake_tui.cli import main
from cake_tui.model import event as ev
from cake_tui.store.lock import take_device
from cake_tui.store.reading import JournalReader
from cake_tui.store.telemetry import BeatReader
from tests.cases.shell import QUIET, SLOW, Shell, ended, legal_move
from tests.engine.scripted import descendants, folded, kinds, until


@pytest.mark.parametrize(
    "words",
    [
        ("--name", "a/b"), ("--name", ".."), ("--name", "x" * 300), ("--name", "a\nb"), ("--name", ""),
        ("--candidates", "many"), ("--hours", "-1"), ("--set", "ruond=4"), ("--set", "round"), ("--seed", "-1"),
        ("--agent", "bandti"), ("--backend", "gpu"), ("--device", "rigde"), ("--goal", "fast"), ("--from", "nothing"),
        ("--shape", "M=0"), ("--shape", "Q=3"), ("matmul_bias_rleu",), ("--nmae", "x"),
    ],
)  # fmt: skip
def test_each_mistake_is_one_line_and_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CAKE_TUI_SESSIONS", raising=False)
    given = ("--backend", "simulated", *words) if "--backend" not in words else words
    assert main(["run", "--headless", *given]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_starting_from_another_session_or_a_file(shell: Shell) -> None:
    first = shell.headless(candidates=8)
    best = folded(first).incumbent
    assert best is not None
    schedule = folded(first).rows[best].schedule
    for origin in (f"a:{best}", "sessions/a/best/schedule.txt"):
        name = f"from-{len(list(shell.sessions.iterdir()))}"
        session = shell.headless(name, candidates=2, **{"from": origin})
        history = folded(session)
        assert history.rows[0].schedule == schedule
        assert history.session is not None
        assert history.session.started_from is not None
    assert "no candidate 999" in shell("run", "--backend", "simulated", "--from", "a:999", code=2)


def test_a_goal_ends_the_run(shell: Shell) -> None:
    session = shell.headless(candidates=200, goal="2 baseline")
    assert folded(session).state_reason == "goal reached: 2 baseline"


def test_status_imports_nothing_heavy(shell: Shell) -> None:
    shell.headless(candidates=2)
    program = (
        "import sys\nfrom cake_tui.cli import main\ncode = main(['status', 'a'])\n"
        "heavy = {'numpy', 'textual', 'openai', 'pynvml', 'cake_tui.ir', 'cake_tui.loop', 'multiprocessing'}\n"
        "print(code, sorted(heavy & set(sys.modules)))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=shell.folder, env=shell.environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"


def test_what_the_machine_lacks_is_told_by_the_starter_and_leaves_no_folder(shell: Shell) -> None:
    said = shell("run", "--backend", "simulated", "--device", "ridge,probe=0", "--name", "a", code=3)
    assert said.count("\n") == 1
    assert "test compile" in said
    assert list(shell.sessions.glob("*")) == []


@pytest.mark.cc
def test_a_device_in_use_is_told_with_its_holder_and_leaves_no_folder(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    (device,) = registry.load("backends", "cpu").devices()
    monkeypatch.setenv("CAKE_TUI_LOCKS", shell.environment["CAKE_TUI_LOCKS"])
    held = take_device(device.uuid, "other", "somebody")
    assert held is not None
    said = shell("run", "--backend", "cpu", "--name", "a", code=4)
    for part in (device.uuid, '"other"', "somebody", str(os.getpid())):
        assert part in said
    assert list(shell.sessions.glob("*")) == []
    held.release()


def menu_changes(session: Path) -> list[str]:
    events = JournalReader(session / "journal.jsonl").read()
    return [change for event in events if isinstance(event, ev.MenuChanged) for change in event.changes]


def test_the_action_space_grows_while_the_run_goes_on(shell: Shell) -> None:
    session = shell.start(candidates=10_000)
    added = '[[action]]\nname = "deep_unroll"\nlevel = "micro"\nsummary = "Unroll by eight"\n'
    added += 'edits = [{ do = "unroll", factor = 8 }]\n'
    (shell.folder / "new.toml").write_text(added, encoding="utf-8")
    assert "added" in shell("inject", "a", "--add", "new.toml")
    assert "deep_unroll" in shell("inject", "a", "--add", "new.toml", code=2)  # it is there already
    (shell.folder / "wrong.toml").write_text(added.replace("level", "lewel").replace("deep", "more"), encoding="utf-8")
    said = shell("inject", "a", "--add", "wrong.toml", code=2).splitlines()
    assert said[0].startswith("a: wrong.toml:1: ")
    assert said[1].startswith("wrong.toml:3: ")
    assert "set apply_unroll.factor" in shell("inject", "a", "--values", "apply_unroll.factor=1,2")
    assert "no parameter" in shell("inject", "a", "--values", "apply_unroll.fcator=1,2", code=2)
    assert "allowed: ACTION.PARAMETER" in shell("inject", "a", "--values", "apply_unroll", code=2)
    until(lambda: any("deep_unroll" in change and "added" in change for change in menu_changes(session)))
    until(lambda: any("apply_unroll: factor" in change for change in menu_changes(session)))
    shell("pause", "a")
    move = legal_move(session, *(f"{before}deep_unroll()" for before in ("", "use_tiled_loops() + ", "split_k(2) + ")))
    assert f"queued {move}" in shell("inject", "a", move)


def test_tail_follows_to_the_end(shell: Shell) -> None:
    session = shell.start(candidates=10_000)
    tail = subprocess.Popen(
        shell.words("tail", "a", "-f"), cwd=shell.folder, env=shell.environment, stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    until(lambda: ended(session) >= 2)
    shell("mark", "a", "a note for the tail")
    shell("stop", "a")
    said = tail.communicate(timeout=60)[0]
    assert "a note for the tail" in said
    assert "STOPPED" in said.splitlines()[-1]


def test_outside_text_is_literal_in_every_line(shell: Shell) -> None:
    session = shell.start(candidates=10_000)
    text = "k.c(12): error: mm<[/BM]> [/dim] [/ a[i][/*pad*/] \x1b[31m\r"
    shell("mark", "a", text)
    shown = "mark by tester: k.c(12): error: mm<[/BM]> [/dim] [/ a[i][/*pad*/] \\x1b[31m\\r"
    assert shown in shell("tail", "a", "-n", "100")
    assert shown in shell("attach", "a") or ended(session) > 8
    assert shown in (session / "engine.log").read_text(encoding="utf-8")
    taken = [event for event in JournalReader(session / "journal.jsonl").read() if isinstance(event, ev.RequestTaken)]
    assert [event.body["note"] for event in taken] == [text]


def test_a_locale_without_utf8_changes_no_file(shell: Shell) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for name in ("run", "show", "status", "list"):
        words = ("run", "--backend", "simulated", "--device", QUIET, "--name", "a", "--candidates", "3", "--headless")
        shell(*(words if name == "run" else (name, "a") if name != "list" else ("list",)), **plain)
    (shell.sessions / "a" / "engine.log").read_bytes().decode("utf-8")


def test_a_terminal_that_is_dumb_gets_plain_lines(shell: Shell) -> None:
    master, slave = pty.openpty()
    command = shell.words("run", "--backend", "simulated", "--device", SLOW, "--name", "a")
    process = subprocess.Popen(
        command, cwd=shell.folder, env={**shell.environment, "TERM": "dumb"}, stdin=slave, stdout=slave, stderr=slave
    )  # fmt: skip
    os.close(slave)
    shown = b""
    while process.poll() is None or select.select([master], [], [], 0.1)[0]:
        if select.select([master], [], [], 0.1)[0]:
            try:
                shown += os.read(master, 4096)
            except OSError:
                break
    assert process.wait(60) == 0
    os.close(master)
    assert b"\x1b" not in shown
    assert b"attach a" in shown
    until(lambda: ended(shell.sessions / "a") >= 1)  # and the run outlives the terminal


def beats(session: Path) -> list[float]:
    return [beat.mono for beat in BeatReader(session / "telemetry.jsonl", 4 << 20).read()]


def test_a_viewer_that_freezes_or_goes_never_touches_the_run(shell: Shell) -> None:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    command = shell.words(
        "run", "--backend", "simulated", "--device", SLOW, "--name", "a", "--set", "heartbeat=0.1"
    )  # fmt: skip
    viewer = subprocess.Popen(
        command, cwd=shell.folder, env={**shell.environment, "TERM": "xterm-256color"}, stdin=slave, stdout=slave,
        stderr=slave, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    session = shell.sessions / "a"
    until(lambda: ended(session) >= 1)
    pid, seen = shell.pid(), ended(session)
    # Nobody reads the terminal: the run goes on at its own pace.
    until(lambda: select.select([master], [], [], 0)[0])
    time.sleep(1.5)
    until(lambda: ended(session) > seen)
    steps = sorted(later - earlier for earlier, later in itertools.pairwise(beats(session)[-15:]))
    assert steps[len(steps) // 2] == pytest.approx(0.1, rel=0.1)
    os.close(master)
    until(lambda: viewer.poll() is not None)
    seen = ended(session)
    until(lambda: ended(session) > seen)
    assert shell.pid() == pid
    numbers = [event.seq for event in JournalReader(session / "journal.jsonl").read()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert f"best #{folded(session).incumbent}" in shell("attach", "a")


def test_a_compile_is_not_ended_for_time_that_the_engine_did_not_have(shell: Shell) -> None:
    session = shell.start(device="ridge,compile_s=0.8", candidates=10_000, set="compile_s=2")
    until(lambda: "Planned" in kinds(session))
    pid = shell.pid()
    until(lambda: descendants(pid))
    time.sleep(0.3)
    os.kill(pid, signal.SIGSTOP)
    time.sleep(2.5)
    os.kill(pid, signal.SIGCONT)
    until(lambda: "BuildEnded" in kinds(session))
    assert "TimedOut" not in folded(session).counts
    monos = [event.mono for event in JournalReader(session / "journal.jsonl").read()]
    assert folded(session).elapsed_s < monos[-1] - monos[0] - 1.4  # a heartbeat of 1 s is not given back
    assert "gap of" in shell("tail", "a", "-n", "100")
