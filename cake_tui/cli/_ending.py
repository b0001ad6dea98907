"""How a command ended, as an exit code: the user's mistake, a signal, a closed pipe or a bug with its report."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
import termios
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType

from cake_tui.config import cache_dir
from cake_tui.errors import BUG, ENVIRONMENT, UserError, printable
from cake_tui.store.files import what_the_machine_lacks

_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def exit_code_of(act: Callable[[], int], arguments: Sequence[str]) -> int:
    """Run `act` and return its exit code; 128+n where signal n ended it, 1 with a written report for a bug."""
    _open_what_is_closed()
    _let_any_text_through()
    try:
        with _signals_unwind():
            code = act()
            sys.stdout.flush()
            return code
    except UserError as error:
        complain(str(error))
        return error.exit_code
    except BrokenPipeError:
        _silence()
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except OSError as error:
        if error.errno == errno.EIO and _terminal_is_gone():
            _silence()
            return 128 + signal.SIGHUP
        full = what_the_machine_lacks(error)
        lacks = full or _lost_folder(error)
        if lacks is not None:
            if (
                full is not None and error.filename is None
            ):  # standard output is a file on the full disk: what is left of it goes nowhere
                _silence()
            complain(lacks)
            return ENVIRONMENT
        _report_bug(error, arguments)
        return BUG
    except Exception as error:  # noqa: BLE001 the process boundary: a bug is reported, not shown as a stack
        _report_bug(error, arguments)
        return BUG


def _silence() -> None:
    """Let output go nowhere: its reader has gone (`cake-tui list | head`), now and at the interpreter's exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _terminal_is_gone() -> bool:
    """Whether the terminal hung up under the process; any other input/output error is a bug or a bad disk."""
    try:
        termios.tcgetattr(sys.stdout.fileno())
    except termios.error as error:
        return bool(error.args and error.args[0] == errno.EIO)
    except io.UnsupportedOperation:  # no file at all: output is kept in memory
        return False
    return False


def _lost_folder(error: OSError) -> str | None:
    """The line for a working folder that was removed under the shell; None for any other error."""
    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return "the working folder is gone; change into one that is there" if error.filename is None else None
    return None


def complain(message: str) -> None:
    """Write an error to stderr, one line a mistake; control characters of outside text are escaped."""
    for line in message.rstrip("\n").split("\n"):
        with contextlib.suppress(OSError):  # nobody listens: the exit code says it all the same
            print(printable(line), file=sys.stderr)


def _open_what_is_closed() -> None:
    """Lead standard streams that the caller closed nowhere: else a session's files would get their numbers."""
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", errors="replace", closefd=False))


def _let_any_text_through() -> None:
    """A terminal that cannot show a character gets a placeholder, never an encoding error."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


@contextlib.contextmanager
def _signals_unwind() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind the stack, so that half-made folders go; ignored ones stay ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = [number for number in _ENDING_SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, _unwind)
    try:
        yield
    finally:
        for number in ours:
            if signal.getsignal(number) is _unwind:
                signal.signal(number, signal.SIG_DFL)


def _unwind(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _report_bug(error: Exception, arguments: Sequence[str]) -> None:
    """Keep the traceback in a file and say where in one line; without a file, show it."""
    trace = "".join(traceback.format_exception(error))
    first = (str(error).splitlines() or [""])[0][:200]
    said = f"cake-tui: a bug of cake-tui: {type(error).__name__}: {first}"
    path = cache_dir() / "reports" / f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.log"
    try:
        _write_report(path, arguments, trace)
    except OSError:
        complain(said)
        sys.stderr.write(trace)
        return
    complain(f"{said}; traceback in {path}")


def _write_report(path: Path, arguments: Sequence[str], trace: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    words = " ".join(arguments)
    path.write_text(f"cake-tui {words}\n\n{trace}", encoding="utf-8", errors="backslashreplace")
