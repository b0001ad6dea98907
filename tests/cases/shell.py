"""A person at a shell: commands in a working folder of their own, terminals, processes and what they leave behind."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cake_tui.cli import main
from cake_tui.model import event as ev
from cake_tui.store.lock import living_holder
from cake_tui.store.reading import JournalReader
from cake_tui.store.telemetry import Beat, BeatReader
from cake_tui.tui.moves import Moves
from tests.engine.rest import own_seconds, rest
from tests.engine.scripted import descendants as descendants
from tests.engine.scripted import folded, gone, until

ROOT = Path(__file__).parents[2]
QUIET = "ridge,noise=0,drift=0,failures=0"
SLOW = "ridge,series_s=0.03,compile_s=0.2"
PLAIN = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


class Shell:
    """Runs commands in a working folder with locks, cache and temporary files of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sessions = folder / "sessions"
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.environment = {
            **os.environ, "PYTHONPATH": str(ROOT), "CAKE_TUI_LOCKS": str(folder / "locks"), "CAKE_TUI_WHO": "tester",
            "XDG_CACHE_HOME": str(cache_of_runtimes()), "TMPDIR": str(self.temporary), "LC_ALL": "C.UTF-8",
        }  # fmt: skip
        for name in ("CAKE_TUI_SESSIONS", "CC", "PYTHONUTF8", "NO_COLOR"):
            self.environment.pop(name, None)

    def words(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "cake_tui", *words]

    def popen(self, *words: str, **options: Any) -> subprocess.Popen[Any]:
        """Start a command; its environment is this shell's, with `environment` on top."""
        environment = {**self.environment, **options.pop("environment", {})}
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(self.words(*words), cwd=self.folder, env=environment, **options)

    def apart(self, *words: str, code: int = 0, **environment: str) -> tuple[str, str]:
        """Run a command as a process; return what it printed and what it said on stderr."""
        process = self.popen(*words, environment=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return self._said(process, code)

    def within(self, seconds: float, *words: str, code: int = 0) -> tuple[str, str]:
        """As `apart`; it may take so long at most, without what the machine's load adds to it."""
        process = self.popen(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert own_seconds(process.pid, lambda: process.poll() is not None) <= seconds, words
        return self._said(process, code)

    def _said(self, process: subprocess.Popen[Any], code: int) -> tuple[str, str]:
        out, err = process.communicate(timeout=120)
        texts = out.decode("utf-8", "replace"), err.decode("utf-8", "replace")
        assert process.returncode == code, (process.args, process.returncode, texts)
        assert "\x1b" not in texts[0] + texts[1]
        return texts

    def here(self, *words: str, code: int = 0) -> str:
        """Run a command that starts no process in this one, which spares an interpreter; stderr where it failed."""
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            found = main(words)
        texts = []
        for stream in (out, err):
            stream.flush()
            stream.seek(0)
            texts.append(stream.read())
        assert found == code, (words, found, texts)
        return texts[1] if code else texts[0]

    def __call__(self, *words: str, code: int = 0, **environment: str) -> str:
        """Run a command here where that is enough; return what it printed, on stderr where it failed."""
        if words[0] in ("run", "resume") or environment:
            return self.apart(*words, code=code, **environment)[1 if code else 0]
        return self.here(*words, code=code)

    def json(self, *words: str) -> Any:
        return json.loads(self.here(*words, "--json"))

    def start(self, name: str = "a", device: str = SLOW, **flags: object) -> Path:
        """Start a detached simulated run."""
        out, _ = self.apart("run", "--backend", "simulated", "--device", device, "--name", name, *_flags(flags))
        assert f"attach {name}" in out
        return self.sessions / name

    def headless(self, name: str = "a", device: str = QUIET, code: int = 0, **flags: object) -> Path:
        """Run a simulated session to its end."""
        words = ("run", "--backend", "simulated", "--device", device, "--name", name, "--headless")
        self.apart(*words, *_flags(flags), code=code)
        return self.sessions / name

    def pid(self, name: str = "a") -> int:
        holder = living_holder(self.sessions / name / "lock")
        assert holder is not None
        return holder.pid

    def brisk(self, name: str = "a") -> Path:
        """Start a detached run none of whose steps takes over 0.2 s: once paused it is soon still."""
        return self.start(name, "ridge,series_s=0.005,compile_s=0.1", candidates=10_000, set="gate_series=4")

    def still(self, name: str = "a") -> bytes:
        """Wait until the step that was under way when a brisk run was paused has ended; return its record."""
        journal, pid = self.sessions / name / "journal.jsonl", self.pid(name)
        return bytes(rest(0.4, lambda: [pid, *descendants(pid)], journal.read_bytes))

    def left_behind(self) -> list[str]:
        """What the commands left outside of their sessions."""
        return sorted(path.name for path in self.temporary.iterdir())


def legal_move(session: Path, *offered: str) -> str:
    """Return the first of the moves offered, else of all there are, that nothing forbids from the best as it is."""
    moves = Moves(folded(session))
    return next(text for text in offered or moves.examples() if moves.judge(text).legal)


def _flags(flags: dict[str, object]) -> list[str]:
    return [word for key, value in flags.items() for word in (f"--{key}", str(value))]


def variations(many: Iterable[Any], always: int = 1) -> list[Any]:
    """All of them with --soak, else only the first `always`: one kind of fault, other inputs."""
    return [pytest.param(one, marks=[pytest.mark.soak] if place >= always else []) for place, one in enumerate(many)]


def cache_of_runtimes() -> Path:
    """One cache for all shells: compiling the runtime once is enough."""
    return Path(tempfile.gettempdir()) / f"cake-tui-cases-{os.getuid()}"


def end_all(shell: Shell) -> None:
    """End what still runs."""
    for lock in shell.sessions.glob("*/lock"):
        holder = living_holder(lock)
        if holder is not None and holder.pid != os.getpid():
            with contextlib.suppress(ProcessLookupError):
                os.kill(holder.pid, signal.SIGKILL)
            until(lambda pid=holder.pid: gone(pid))


def copied(session: Path, sessions: Path, name: str) -> Path:
    """Copy a session's folder: another session of that folder's name."""
    sessions.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copytree(session, sessions / name))


def events(session: Path, *kinds: type[ev.Event]) -> list[Any]:
    """Return the events of these kinds."""
    return [event for event in JournalReader(session / "journal.jsonl").read() if isinstance(event, kinds)]


def ended(session: Path) -> int:
    """Return how many candidates have ended."""
    return len(events(session, ev.CandidateEnded)) if (session / "journal.jsonl").exists() else 0


def beats(session: Path) -> list[Beat]:
    """Return the heartbeats of a session, oldest first."""
    return BeatReader(session / "telemetry.jsonl", 4 << 20).read()


def log_of(session: Path) -> str:
    return (session / "engine.log").read_text(encoding="utf-8")


def all_gone(pids: list[int]) -> Callable[[], bool]:
    return lambda: all(map(gone, pids))


class Screen:
    """A command on a pseudo terminal, which is its controlling one."""

    def __init__(self, shell: Shell, *words: str, ignore_hup: bool = False, **environment: str) -> None:
        self.master, slave = pty.openpty()

        def before() -> None:
            if ignore_hup:
                signal.signal(signal.SIGHUP, signal.SIG_IGN)
            os.setsid()
            os.close(os.open(os.ttyname(slave), os.O_RDWR))  # the first one opened becomes the controlling one

        terminal = {"TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40", **environment}
        self.process = shell.popen(
            *words, stdin=slave, stdout=slave, stderr=slave, preexec_fn=before, close_fds=True, environment=terminal
        )
        os.close(slave)
        self.shown = b""

    def read(self, seconds: float = 0.0) -> bytes:
        """Read what comes within so long."""
        deadline = time.monotonic() + seconds
        while select.select([self.master], [], [], max(0.0, deadline - time.monotonic()))[0]:
            try:
                block = os.read(self.master, 1 << 16)
            except OSError:
                break
            if not block:
                break
            self.shown += block
        return self.shown

    def hang_up(self) -> None:
        """Close our end, as a lost connection does."""
        with contextlib.suppress(OSError):
            os.close(self.master)


@contextlib.contextmanager
def screen(shell: Shell, *words: str, **options: Any) -> Iterator[Screen]:
    """A command on a terminal, ended with the test."""
    made = Screen(shell, *words, **options)
    try:
        yield made
    finally:
        made.hang_up()
        if made.process.poll() is None:
            made.process.kill()
        made.process.wait(60)
