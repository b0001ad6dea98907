"""Start an engine in a process of its own, detached from the terminal; executors see to their own children."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable

import msgspec

from cake_tui.errors import BUG, ENVIRONMENT, OK, UserError
from cake_tui.store.files import what_the_machine_lacks


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
                pipe.write(msgspec.json.encode(msgspec.structs.replace(started, pid=os.getpid())))

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
        lacks = what_the_machine_lacks(error) if isinstance(error, OSError) else None
        if lacks is not None:
            announce(Started(error=lacks, exit_code=ENVIRONMENT))
            os._exit(ENVIRONMENT)
        announce(Started(trace="".join(traceback.format_exception(error)), exit_code=BUG))
    finally:
        os._exit(code)


def _leave_terminal() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)
