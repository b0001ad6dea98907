"""An engine around a scripted loop, in this process or as a program of its own: fast, and without kernels.

``python -m tests.engine.scripted SESSIONS NAME [OPTION=VALUE ...]`` starts or resumes it in the foreground;
``detached=1`` detaches it. The other options are those of `Script`.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import msgspec

from cake_tui.engine.desk import Desk
from cake_tui.engine.drive import Engine
from cake_tui.engine.opening import reopen
from cake_tui.engine.process import Announce, Started, detach
from cake_tui.errors import Ended, UserError
from cake_tui.menu import LiveMenu, Menu
from cake_tui.model import event as ev
from cake_tui.model.facts import Agreement
from cake_tui.model.history import History
from cake_tui.model.measure import GateResult
from cake_tui.model.move import Move, Proposal
from cake_tui.model.outcome import BuildFailed, Crashed, Measured
from cake_tui.model.row import Row
from cake_tui.model.schedule import Schedule
from cake_tui.monitors import Monitor
from cake_tui.store.clock import Clocks
from cake_tui.store.reading import JournalReader
from cake_tui.store.session import create, open_locked
from cake_tui.store.snapshot import fold_new
from tests.store import journals


class Script(msgspec.Struct):
    """What the loop does: `candidates` effective ones, each of five steps of `step_s` seconds."""

    candidates: int = 10
    step_s: float = 0.0
    win_every: int = 5
    fail: str = ""  # every candidate but the first fails to build, for this reason
    bug_at: int = -1
    mistake_at: int = -1
    ended_at: int = -1
    log_bytes: int = 0
    deaf: bool = False  # steps are spent without a look at anything
    fsize: int = 0  # a file may not be longer: a full disk without a disk
    detached: bool = False
    heartbeat: float = 0.1
    disk: float = 2.0
    equal_failures: int = 20


class LazyMenu:
    """The packaged menu, read when somebody asks for it."""

    def __init__(self) -> None:
        self._live: LiveMenu | None = None

    def current(self, history: History) -> Menu:
        if self._live is None:
            self._live = LiveMenu(None, history.problem, history.device)
        return self._live.current(history)

    def poll(self) -> ev.MenuChanged | None:
        return None


def events(script: Script, engine: Engine, history: History) -> Generator[ev.Event | None, None, str]:
    """The scripted loop: it goes on from the last event of a candidate in flight, as the real one does."""

    def spend() -> None:
        until = time.monotonic() + script.step_s
        if script.deaf:
            time.sleep(script.step_s)
        while time.monotonic() < until:
            engine.wait()
            time.sleep(0.002)

    left = list(history.in_flight())
    for row in left:
        yield ev.StepLost(candidate=row.number, step=row.step)
    for row in left:
        yield from finish(script, engine, history, row, spend)
    while history.effective < script.candidates:
        number = len(history.rows)
        if number == script.bug_at:
            raise ZeroDivisionError("a bug of the loop")
        if number == script.mistake_at:
            raise UserError("actions.toml:3: no such knob\nactions.toml:9: no such edit", 2)
        if number == script.ended_at:
            raise Ended(Crashed(step="start", reason="candidate 0 has no time"))
        request = next(iter(history.queue.values()), None)
        moves = request.moves if request is not None else (Move("apply_unroll", (("factor", 2),)),)
        proposal = Proposal(
            history.incumbent or 0, moves if number else (), "scripted", "script", "script",
            request.id if request is not None and number else None,
        )  # fmt: skip
        yield None
        spend()
        yield ev.Planned(
            candidate=number, round=number, proposal=proposal, level="micro", predicted_us=100.0,
            schedule=Schedule.of("tiled", {"unroll": number}), source_sha256=f"{number:064}",
        )  # fmt: skip
        yield from finish(script, engine, history, history.rows[number], spend)
    return f"{history.effective} of {script.candidates} candidates"


def finish(
    script: Script, engine: Engine, history: History, row: Row, spend: Callable[[], None]
) -> Generator[ev.Event | None, None, None]:
    number = row.number
    if script.log_bytes:
        engine.session.write(number, "build.log", "w" * script.log_bytes)
        engine.session.write(number, "answer.prompt", "p" * 40_000)
    engine.session.write(number, "kernel.c", f"// candidate {number}\n")
    if script.fail and number:
        spend()
        failed = BuildFailed(step="build", reason=f"{script.fail} in candidate {number}")
        yield ev.CandidateEnded(candidate=number, round=row.round, outcome=failed)
        return
    if row.step == "planned":
        spend()
        yield ev.BuildEnded(candidate=number, seconds=0.0, full_sha256="f", smoke_sha256="s")
    if row.step == "build":
        spend()
        yield ev.CheckEnded(candidate=number, seconds=0.0, agreement=Agreement(1e-6, 1e-6, 1.0, 0.1))
    against = history.incumbent
    spend()
    time_us = 1000.0 / (1 + number)
    yield ev.Coarse(candidate=number, against=against, seconds=0.0, avg_us=time_us, runs_us=(time_us,) * 3, gain=0.01)
    wins = number % script.win_every == 0
    if against is not None:
        spend()
        decision = "accept" if wins else "reject"
        result = GateResult(decision, 0.01, 0.006, 1, 4, wins, "scripted", time_us, 1000.0)  # type: ignore[arg-type]
        yield ev.GateEnded(candidate=number, against=against, seconds=0.0, result=result)
    verdict: Any = None if against is None else "accepted" if wins else "slower"
    outcome = Measured(step="gate", verdict=verdict, avg_us=time_us)
    yield ev.CandidateEnded(candidate=number, round=row.round, outcome=outcome)
    if history.incumbent == number:
        engine.session.publish(number, {"kernel.c": f"// candidate {number}\n"})


def run(
    sessions: Path,
    name: str,
    script: Script,
    announce: Announce = lambda started: None,
    *,
    clocks: Clocks | None = None,
    monitor: Monitor | None = None,
    values: dict[str, Any] | None = None,
    before: Callable[[Engine], None] | None = None,
) -> int:
    """Start or resume a scripted session here and return its exit code."""
    path = sessions / name
    clocks = clocks or Clocks()
    if path.exists():
        session = open_locked(path, who="tester")
        left = reopen(path, values or {})
        history, lines, changes = left.history, left.lines, left.changes
        settings, notices = left.settings, left.notices
    else:
        first = journals.created(
            name, heartbeat=script.heartbeat, disk=script.disk, equal_failures=script.equal_failures
        )
        session = create(sessions, first, clocks, who="tester")
        history, reader = History(), JournalReader(session.journal_path)
        fold_new(history, reader)
        lines, changes, settings, notices = reader.line, (), dict(history.settings), ()
    if script.fsize:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (script.fsize, resource.RLIM_INFINITY))
    engine = Engine(session, history, lines=lines, clocks=clocks, monitor=monitor, foreground=not script.detached)
    engine.begin(
        Desk(LazyMenu(), session.write_settings), changes=changes, settings=settings, notices=notices, who="tester"
    )
    announce(Started(session=str(path), notices=notices))
    if before is not None:
        before(engine)
    try:
        return engine.drive(events(script, engine, history))
    finally:
        session.lock.release()


def main() -> int:
    sessions, name = Path(sys.argv[1]), sys.argv[2]
    given = dict(word.split("=", 1) for word in sys.argv[3:])
    script = msgspec.convert(given, Script, strict=False)
    if script.detached:
        started = detach(lambda announce: run(sessions, name, script, announce))
        print(json.dumps(msgspec.to_builtins(started)))
        return 0
    return run(sessions, name, script)


# -- for tests -------------------------------------------------------------------------------------------


def command(sessions: Path, name: str, **options: object) -> list[str]:
    words = [f"{key}={value}" for key, value in options.items()]
    return [sys.executable, "-m", "tests.engine.scripted", str(sessions), name, *words]


def start(sessions: Path, name: str = "a", **options: object) -> Started:
    """Start a detached one and return what it told."""
    done = subprocess.run(
        command(sessions, name, detached=1, **options), capture_output=True, text=True, timeout=60, check=True
    )
    return msgspec.convert(json.loads(done.stdout), Started)


def kinds(session: Path) -> list[str]:
    return [type(event).__name__ for event in JournalReader(session / "journal.jsonl").read()]


def folded(session: Path) -> History:
    history = History()
    fold_new(history, JournalReader(session / "journal.jsonl"))
    return history


def until(condition: Callable[[], Any], timeout_s: float = 60.0) -> Any:
    """Wait for a condition and return what it gave; fails where it never holds."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.01)
    raise AssertionError("it never came to that")


def gone(pid: int) -> bool:
    """Tell whether a process has ended (a zombie of a stranger counts as ended)."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().split()[2] in (b"Z", b"X")
    except OSError:
        return True


def states(pid: int) -> set[bytes]:
    """Return the states of a process's threads as /proc names them: R running or waiting for a processor, T stopped."""
    found = set()
    for path in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):  # the thread ended meanwhile
            found.add(path.read_bytes().rsplit(b")", 1)[1].split()[0])
    return found


def open_files(pid: int) -> list[str]:
    """Return what the descriptors of a process stand for, but for those that it closes meanwhile."""
    found = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(str(path.readlink()))
    return found


def descendants(pid: int) -> list[int]:
    """Return the processes that a process started, and those that they started."""
    found, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        for path in Path(f"/proc/{parent}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                children = [int(word) for word in path.read_text(encoding="ascii").split()]
                found += children
                waiting += children
    return found


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    if not gone(pid):
        os.kill(pid, number)


if __name__ == "__main__":
    sys.exit(main())
