"""Start an engine: detached from the terminal or in the foreground, with a guardian that leaves no child behind."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
import uuid
from collections.abc import Callable
from pathlib import Path

import msgspec

from cake_tui.config import mark_children
from cake_tui.errors import BUG, OK, UserError


class Started(msgspec.Struct, frozen=True):
    """What a detached engine tells the command that started it: that it runs, or why it does not."""

    pid: int = 0
    session: str = ""
    notices: tuple[str, ...] = ()
    error: str = ""
    exit_code: int = OK
    trace: str = ""


Announce = Callable[[Started], None]
Work = Callable[[Announce], int]
"""Makes the session ready, announces it, runs to the end and returns the exit code."""


class EngineDied(RuntimeError):
    """The engine ended with a bug before it could tell anything; its traceback is the message."""


def detach(work: Work) -> Started:
    """Run `work` in a process of its own session without a terminal; return once it runs.

    Raises UserError where it refused to start. SIGHUP and the terminal's signals never reach it.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    middle = os.fork()
    if middle == 0:
        os.close(reading)
        os.setsid()
        if os.fork() > 0:
            os._exit(0)
        _engine_process(work, writing)
    os.close(writing)
    os.waitpid(middle, 0)
    with os.fdopen(reading, "rb") as pipe:
        return _await(pipe.readline, pipe.read)


def _await(read_pid: Callable[[], bytes], read_rest: Callable[[], bytes]) -> Started:
    pid = int(read_pid() or b"0")
    try:
        message = read_rest()
    except BaseException:
        # The person gave up, or this command was told to end: an engine that has not started goes too.
        if pid:
            os.kill(pid, signal.SIGTERM)
        raise
    if not message:
        raise EngineDied("the engine was killed before its session was ready")
    started = msgspec.json.decode(message, type=Started)
    if started.trace:
        raise EngineDied(started.trace)
    if started.error:
        raise UserError(started.error, started.exit_code)
    return started


def _engine_process(work: Work, writing: int) -> None:
    """The detached process: never returns."""
    code = BUG
    told = False

    def announce(started: Started) -> None:
        nonlocal told
        if not told:
            told = True
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(msgspec.json.encode(started))

    try:
        os.write(writing, b"%d\n" % os.getpid())
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _leave_terminal()
        code = work(announce)
    except UserError as error:
        code = error.exit_code
        announce(Started(error=str(error), exit_code=code))
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else BUG
        announce(Started(error="the engine was told to end before it started", exit_code=code))
    except BaseException as error:  # noqa: BLE001 the process boundary: the parent reports it
        announce(Started(trace="".join(traceback.format_exception(error)), exit_code=BUG))
    finally:
        os._exit(code)


def _leave_terminal() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)


# -- no child is left behind -----------------------------------------------------------------------------


class Guardian:
    """A process that outlives the engine by an instant and kills what the engine started.

    It holds a pipe from the engine. However the engine ends, kill -9 included, the pipe closes; children and
    theirs are known by a mark in their environment, whatever group or session they moved to. Make it before
    any lock is taken and any thread started, for it is a fork.
    """

    def __init__(self) -> None:
        self._token = uuid.uuid4().hex
        mark_children(self._token)
        reading, self._pipe = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _guard(reading, self._token)
        os.close(reading)

    def sweep(self) -> int:
        """Kill what is left of the engine's children now; return how many there were."""
        return _sweep(self._token)

    def dismiss(self) -> None:
        """Let the guardian do its work and end: the engine is about to."""
        os.close(self._pipe)
        try:
            os.waitpid(self._pid, 0)
        except ChildProcessError:
            return


def _guard(reading: int, token: str) -> None:
    """The guardian: never returns."""
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        null = os.open(os.devnull, os.O_RDWR)
        kept = os.dup2(reading, 3) if reading != 3 else 3
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        os.closerange(4, 4096)
        while os.read(kept, 1):
            continue
        _sweep(token)
    finally:
        os._exit(0)


def _sweep(token: str) -> int:
    mark = b"CAKE_TUI_ENGINE=" + token.encode()
    killed: set[int] = set()
    deadline = time.monotonic() + 5.0
    while time.monotonic() < deadline:
        # A child may start another between two looks: until nobody is left.
        marked = [pid for pid in _processes() if _carries(pid, mark)]
        if not marked:
            break
        for pid in marked:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
            killed.add(pid)
        _reap(marked)
        time.sleep(0.01)
    return len(killed)


def _processes() -> list[int]:
    try:
        return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    except OSError:
        return []


def _carries(pid: int, mark: bytes) -> bool:
    if pid == os.getpid():
        return False
    try:
        return mark in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def _reap(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.waitpid(pid, os.WNOHANG)
        except OSError:
            continue
