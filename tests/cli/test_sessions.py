"""Sessions from the command line: real processes, the simulated backend, terminals where one is involved."""

from __future__ import annotations

import contextlib
import fcntl
import io
import itertools
import json
import os
import pty
import random
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cake_tui import registry
from cake_tui.cli import main
from cake_tui.model import event as ev
from cake_tui.store.lock import living_holder, take_device
from cake_tui.store.reading import JournalReader
from cake_tui.store.telemetry import recent_beats
from tests.engine.scripted import folded, gone, kinds, until

ROOT = Path(__file__).parents[2]
QUIET = "ridge,noise=0,drift=0"
STEP_ENDS = {"BuildEnded", "CheckEnded", "Coarse", "GateEnded", "CandidateEnded"}
SLOW = "ridge,series_s=0.03,compile_s=0.3"


class Shell:
    """Runs commands in a working folder of its own, without a terminal unless asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sessions = folder / "sessions"
        self.environment = {
            **os.environ, "PYTHONPATH": str(ROOT), "CAKE_TUI_LOCKS": str(folder / "locks"), "CAKE_TUI_WHO": "tester",
            "XDG_CACHE_HOME": str(folder / "cache"),
        }  # fmt: skip
        self.environment.pop("CAKE_TUI_SESSIONS", None)

    def words(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "cake_tui", *words]

    def __call__(self, *words: str, code: int = 0, **environment: str) -> str:
        """Run one command; return what it printed, on stderr where it failed."""
        if words[0] in ("run", "resume") or environment:
            found, out, err = self._apart(words, environment)
        else:
            found, out, err = self._here(words)
        assert found == code, (words, found, out, err)
        assert "\x1b" not in out + err
        return err if code else out

    def _apart(self, words: tuple[str, ...], environment: dict[str, str]) -> tuple[int, str, str]:
        done = subprocess.run(
            self.words(*words), cwd=self.folder, env={**self.environment, **environment}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, encoding="utf-8", timeout=60, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def _here(self, words: tuple[str, ...]) -> tuple[int, str, str]:
        # What starts no process can run in this one, which saves the start of an interpreter.
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
        texts = []
        for stream in (out, err):
            stream.flush()
            stream.seek(0)
            texts.append(stream.read())
        return code, texts[0], texts[1]

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json"))

    def start(self, name: str = "a", device: str = SLOW, **flags: object) -> Path:
        given = [word for key, value in flags.items() for word in (f"--{key}", str(value))]
        said = self("run", "--backend", "simulated", "--device", device, "--name", name, *given)
        assert f"attach {name}" in said
        return self.sessions / name

    def headless(self, name: str = "a", device: str = QUIET, code: int = 0, **flags: object) -> Path:
        given = [word for key, value in flags.items() for word in (f"--{key}", str(value))]
        self("run", "--backend", "simulated", "--device", device, "--name", name, "--headless", *given, code=code)
        return self.sessions / name

    def pid(self, name: str = "a") -> int:
        holder = living_holder(self.sessions / name / "lock")
        assert holder is not None
        return holder.pid


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    made = Shell(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CAKE_TUI_SESSIONS", raising=False)
    for name in ("CAKE_TUI_LOCKS", "CAKE_TUI_WHO", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, made.environment[name])
    yield made
    for lock in made.sessions.glob("*/lock"):
        holder = living_holder(lock)
        if holder is not None:
            os.kill(holder.pid, signal.SIGKILL)
            until(lambda pid=holder.pid: gone(pid))


def ended(session: Path) -> int:
    return kinds(session).count("CandidateEnded") if (session / "journal.jsonl").exists() else 0


def test_a_run_from_start_to_done(shell: Shell) -> None:
    session = shell.headless(candidates=12, seed=3)
    shown = shell.json("show", "a")
    assert shown["state"] == "done"
    assert shown["kernel"] == "matmul_bias_relu"
    assert shown["problem"]["shapes"] == [{"M": 512, "N": 512, "K": 512}]
    assert shown["device"]["uuid"].startswith("simulated:ridge")
    assert (shown["backend"], shown["agent"]) == ("simulated", "bandit")
    counts = shown["candidates"]
    for key in ("total", "effective", "repeated", "rejected", "screened", "failed", "measured", "accepted"):
        assert isinstance(counts[key], int), key
    assert counts["effective"] >= 12
    best = shown["best"]
    assert best["lineage"][-1] == 0
    assert best["lineage"][0] == best["candidate"]
    work = 2 * 512**3
    assert best["throughput_tflops"] == pytest.approx(work / best["time_us"] * 1e-6)
    assert len(best["source_sha256"]) == 64
    assert shown["speedup"]["baseline"] > 1
    assert isinstance(shown["speedup"]["peer"], dict)
    assert shown["noise"]["pair_pct"] is not None
    assert shown["elapsed_s"] > 0
    assert isinstance(shown["stalled_rounds"], int)
    assert int((session / "best" / "candidate").read_text(encoding="utf-8")) == best["candidate"]
    assert shell.json("status", "a") == shown
    assert "DONE" in shell("status", "a")
    assert shell("status", "a").count("\n") == 1
    assert [one["name"] for one in shell.json("list")] == ["a"]
    assert "a " in shell("list")
    tail = shell("tail", "a", "-n", "3").splitlines()
    assert len(tail) == 3
    assert "DONE" in tail[-1]
    assert all(json.loads(line)["kind"] for line in shell("tail", "a", "--json").splitlines())
    assert f"candidate  {best['candidate']}" in shell("show", "a", "--candidate", str(best["candidate"]))
    assert "allowed" not in shell("show", "a")
    assert "there: 0 to" in shell("show", "a", "--candidate", "99999", code=2)


def test_steering_a_detached_run(shell: Shell) -> None:
    session = shell.start(candidates=10_000)
    until(lambda: ended(session) >= 1)
    assert "paused" in shell("pause", "a")
    assert "PAUSED (by tester)" in shell("status", "a")
    assert "paused already" in shell("pause", "a", code=2)
    before = kinds(session)
    assert "queued apply_unroll(2) + apply_vectorize(8)" in shell("inject", "a", "apply_unroll(2)+apply_vectorize(8)")
    assert 'did you mean "apply_unroll"' in shell("inject", "a", "apply_unrol(2)", code=2)
    assert "taken back" in shell("undo", "a")
    assert "nothing is queued" in shell("undo", "a", code=2)
    assert "disabled apply_unroll" in shell("disable", "a", "apply_unroll")
    assert "disabled already" in shell("disable", "a", "apply_unroll", code=2)
    assert "enabled apply_unroll" in shell("enable", "a", "apply_unroll")
    assert "noted" in shell("mark", "a", "browser closed [/x] \x1b[31m")
    assert "set candidates=900" in shell("set", "a", "candidates=900")
    assert "allowed: 1 to 64" in shell("set", "a", "round=0", code=2)
    after = [kind for kind in kinds(session)[len(before) :] if not kind.startswith("Request")]
    assert after == ["SettingsChanged"]
    assert "queued revert_last()" in shell("inject", "a", "revert_last()")
    assert "goes on" in shell("resume", "a")
    until(lambda: {"BaseReverted", "RequestRefused"} & set(kinds(session)[len(before) + 8 :]))
    until(lambda: len(kinds(session)) > len(before) + 12)
    assert "stopped" in shell("stop", "a")
    assert folded(session).state == "stopped"
    for words in (("pause", "a"), ("inject", "a", "apply_unroll(2)"), ("mark", "a", "x"), ("stop", "a")):
        assert "not running" in shell(*words, code=2)
    assert list((session / "inbox").iterdir()) == []


def test_a_second_engine_is_refused_and_adds_not_a_byte(shell: Shell) -> None:
    session = shell.start(candidates=10_000)
    pid = shell.pid()
    until(lambda: ended(session) >= 1)
    shell("pause", "a")
    record = (session / "journal.jsonl").read_bytes()
    began = time.monotonic()
    refused = shell("run", "--backend", "simulated", "--name", "a", code=4)
    assert time.monotonic() - began < 2
    for part in ('"a"', str(pid), os.uname().nodename, "attach a", "since 20"):
        assert part in refused
    assert (session / "journal.jsonl").read_bytes() == record
    shell("resume", "a")
    assert str(pid) in shell("resume", "a", code=4)
    assert str(pid) in shell("resume", "a", "--headless", code=4)
    assert "RUNNING" in shell("attach", "a")
    assert shell.json("show", "a")["state"] == "running"


def test_of_two_starts_within_ten_milliseconds_exactly_one_wins(shell: Shell) -> None:
    command = shell.words("run", "--backend", "simulated", "--device", SLOW, "--name", "b")
    both = [
        subprocess.Popen(
            command, cwd=shell.folder, env=shell.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    said = [process.communicate(timeout=30) for process in both]
    assert sorted(process.returncode for process in both) == [0, 4], said
    assert [path.name for path in shell.sessions.iterdir()] == ["b"]
    assert kinds(shell.sessions / "b").count("EngineStarted") == 1


def test_kill_9_leaves_no_child_and_loses_at_most_the_step_in_flight(shell: Shell, soak_share: float) -> None:
    rng = random.Random(11)
    session = shell.start(candidates=10_000)
    for _ in range(max(2, round(20 * soak_share))):
        steps = len(kinds(session))
        until(lambda steps=steps: STEP_ENDS & set(kinds(session)[steps:]))
        time.sleep(rng.uniform(0.0, 0.6))
        pid = shell.pid()
        children = descendants(pid)
        before = folded(session)
        os.kill(pid, signal.SIGKILL)
        until(lambda pid=pid: gone(pid))
        until(lambda children=children: all(map(gone, children)), 5)
        kept = folded(session)
        assert children
        for old, new in zip(before.rows, kept.rows):
            assert old.in_flight or old == new
        assert "GONE" in shell("status", "a")
        shell("resume", "a")
        assert kept.incumbent is None or folded(session).rows[kept.incumbent] == kept.rows[kept.incumbent]
    until(lambda: not any(row.lost for row in folded(session).rows) and folded(session).incumbent is not None)
    shell("stop", "a")
    history = folded(session)
    assert [row.number for row in history.rows] == list(range(len(history.rows)))
    assert not list(history.in_flight())
    lost = [
        event.candidate for event in JournalReader(session / "journal.jsonl").read() if isinstance(event, ev.StepLost)
    ]
    assert all(lost.count(row.number) > 1 for row in history.rows if row.outcome == "Crashed")
    assert int((session / "best" / "candidate").read_text(encoding="utf-8")) == history.incumbent


def descendants(pid: int) -> list[int]:
    found, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        for path in Path(f"/proc/{parent}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                children = [int(word) for word in path.read_text(encoding="ascii").split()]
                found += children
                waiting += children
    return found


def test_nothing_is_left_after_a_stop(shell: Shell) -> None:
    session = shell.start(candidates=10_000)
    until(lambda: ended(session) >= 1)
    pid = shell.pid()
    children = descendants(pid)
    assert children
    shell("stop", "a")
    until(lambda: gone(pid) and all(map(gone, children)), 5)


def test_resume_keeps_best_budget_and_numbering(shell: Shell) -> None:
    session = shell.headless(candidates=8)
    before = folded(session)
    assert before.incumbent
    found = before.rows[before.incumbent]
    said = shell("resume", "a", "--candidates", "11", "--seed", "5", "--set", "patience=7", "--headless")
    assert "candidates: 8 → 11" in said
    assert "seed: 0 → 5" in said
    assert "patience: 20 → 7" in said
    after = folded(session)
    assert after.problem.seed == 5
    assert after.rows[: len(before.rows)] == before.rows
    assert after.rows[before.incumbent] == found
    assert after.effective >= 11
    assert kinds(session).count("SessionCreated") == 1
    assert sum(row.proposal.moves == () for row in after.rows) == 1
    if not any(row.verdict == "accepted" for row in after.rows[len(before.rows) :]):
        assert after.incumbent == before.incumbent


def test_a_torn_record_is_told_in_one_line_at_resume(shell: Shell) -> None:
    session = shell.headless(candidates=6)
    journal = session / "journal.jsonl"
    content = journal.read_bytes()
    cut = content.index(b"\n", content.rindex(b'"kind":"CandidateEnded"'))
    journal.write_bytes(content[: cut + 1][:-17])
    line = content[:cut].count(b"\n") + 1
    start = content.rindex(b"\n", 0, cut) + 1
    said = shell("resume", "a", "--candidates", "8", "--headless").splitlines()
    told = [text for text in said if "half written" in text]
    assert len(told) == 1
    for part in ("journal.jsonl", f"line {line}", f"{cut + 1 - 17 - start} bytes", "candidate"):
        assert part in told[0]
    assert "half written" not in shell("resume", "a", "--candidates", "9", "--headless")
    assert all(isinstance(json.loads(text), dict) for text in journal.read_bytes().splitlines())


@pytest.mark.parametrize("damage", [b"", b'{"v":1,"seq":'])
def test_a_lost_snapshot_is_one_notice(shell: Shell, damage: bytes) -> None:
    session = shell.headless(candidates=4)
    best = folded(session).incumbent
    (session / "snapshot.json").write_bytes(damage)
    assert shell.json("status", "a")["state"] == "done"
    assert shell("show", "a").count("is rebuilt") == 1
    said = shell("resume", "a", "--headless")
    assert said.count("is rebuilt") == 1
    assert folded(session).incumbent == best
    assert "is rebuilt" not in shell("show", "a")


def test_a_damaged_session_is_exit_code_five(shell: Shell) -> None:
    session = shell.headless(candidates=2)
    (session / "journal.jsonl").write_bytes(b"\0" * 100 + b"\n")
    (session / "snapshot.json").unlink()
    for words in (("status", "a"), ("show", "a"), ("resume", "a", "--headless")):
        assert "holds no session" in shell(*words, code=5)
    assert "damaged" in shell("list")


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
    added = '[[action]]\nname = "deep_unroll"\nlevel = "micro"\nsummary = "Unroll by sixteen"\n'
    added += 'edits = [{ do = "unroll", factor = 16 }]\n'
    (shell.folder / "new.toml").write_text(added, encoding="utf-8")
    assert "added" in shell("inject", "a", "--add", "new.toml")
    assert "deep_unroll" in shell("inject", "a", "--add", "new.toml", code=2)  # it is there already
    assert "set apply_unroll.factor" in shell("inject", "a", "--values", "apply_unroll.factor=1,2")
    assert "no parameter" in shell("inject", "a", "--values", "apply_unroll.fcator=1,2", code=2)
    assert "allowed: ACTION.PARAMETER" in shell("inject", "a", "--values", "apply_unroll", code=2)
    until(lambda: any("deep_unroll" in change and "added" in change for change in menu_changes(session)), 20)
    until(lambda: any("apply_unroll: factor" in change for change in menu_changes(session)), 20)
    assert "queued deep_unroll()" in shell("inject", "a", "deep_unroll()")


def test_tail_follows_to_the_end(shell: Shell) -> None:
    session = shell.start(candidates=10_000)
    tail = subprocess.Popen(
        shell.words("tail", "a", "-f"), cwd=shell.folder, env=shell.environment, stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    until(lambda: ended(session) >= 2)
    shell("mark", "a", "a note for the tail")
    shell("stop", "a")
    said = tail.communicate(timeout=10)[0]
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
    assert process.wait(20) == 0
    os.close(master)
    assert b"\x1b" not in shown
    assert b"attach a" in shown
    until(lambda: ended(shell.sessions / "a") >= 1)  # and the run outlives the terminal


def beats(session: Path) -> list[float]:
    return [beat.mono for beat in recent_beats(session, 1000)]


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
    until(lambda: select.select([master], [], [], 0)[0], 20)
    time.sleep(1.5)
    until(lambda: ended(session) > seen)
    steps = sorted(later - earlier for earlier, later in itertools.pairwise(beats(session)[-15:]))
    assert steps[len(steps) // 2] == pytest.approx(0.1, rel=0.1)
    os.close(master)
    until(lambda: viewer.poll() is not None, 10)
    seen = ended(session)
    until(lambda: ended(session) > seen)
    assert shell.pid() == pid
    numbers = [event.seq for event in JournalReader(session / "journal.jsonl").read()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert f"best #{folded(session).incumbent}" in shell("attach", "a")


def test_a_compile_is_not_ended_for_time_that_the_engine_did_not_have(shell: Shell) -> None:
    session = shell.start(device="ridge,compile_s=1.2", candidates=10_000, set="compile_s=2")
    until(lambda: "Planned" in kinds(session))
    pid = shell.pid()
    until(lambda: descendants(pid))
    time.sleep(0.3)
    os.kill(pid, signal.SIGSTOP)
    time.sleep(2.5)
    os.kill(pid, signal.SIGCONT)
    until(lambda: "BuildEnded" in kinds(session))
    history = folded(session)
    assert "TimedOut" not in history.counts
    assert history.elapsed_s < 4
    assert "gap of" in shell("tail", "a", "-n", "100")
