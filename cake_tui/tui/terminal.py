"""The terminal is given back however the viewer ends: signals, hang-up, a reader that stopped, a crash."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
GRACE_S = 1.5
# Mouse reporting, focus and paste modes, in-band resize, kitty keys off; line wrap and cursor on; main screen.
RESET = (
    "\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l\x1b[?1004l\x1b[?2004l\x1b[?2048l\x1b[<u"
    "\x1b[?7h\x1b[0m\x1b[?1049l\x1b[?25h"
)


class TerminalGuard:
    """Remembers the terminal's modes and puts them back; asks the app to leave, and leaves without it after 1.2 s.

    A terminal that is gone or no longer read may hold the app's own thread for ever, so a thread of the
    guard waits for the hang-up and for signals; it is a daemon and never keeps the process alive.
    """

    def __init__(self, leave: Callable[[], object]) -> None:
        self.ended_by = 0
        self._leave = leave
        self._fd = sys.__stdin__.fileno() if sys.__stdin__ else 0
        self._out = sys.__stderr__.fileno() if sys.__stderr__ else 2
        self._before: list[Any] | None = None
        self._handlers: dict[int, Any] = {}
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="terminal-guard")

    def __enter__(self) -> TerminalGuard:
        with suppress(termios.error, OSError):
            self._before = termios.tcgetattr(self._fd)
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._handlers[number] = signal.signal(number, self._on_signal)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._poke()
        self._thread.join(0.5)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._restore(also_screen=kind is not None or bool(self.ended_by))
        os.close(self._wake_read)
        os.close(self._wake_write)

    def hurry(self) -> None:
        """The person leaves: see that it takes two seconds at most, also where the terminal takes no more output."""
        self._poke()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.ended_by = self.ended_by or number
        self._poke()

    def _poke(self) -> None:
        with suppress(OSError):
            os.write(self._wake_write, b"x")

    def _watch(self) -> None:
        """Wait for a signal or the terminal's hang-up, then see that the process ends."""
        poll = select.poll()
        poll.register(self._wake_read, select.POLLIN)
        with suppress(OSError, ValueError):
            poll.register(self._fd, 0)  # reports hang-up and errors alone
        for descriptor, _ in poll.poll():
            if descriptor == self._fd:
                self.ended_by = self.ended_by or signal.SIGHUP
        if self._done.is_set():
            return
        if self.ended_by:
            with suppress(RuntimeError):
                self._leave()
        if not self._done.wait(GRACE_S):
            self._restore(also_screen=True)
            os._exit(128 + self.ended_by if self.ended_by else 0)

    def _restore(self, also_screen: bool) -> None:
        if self._before is not None:
            with suppress(termios.error, OSError):
                termios.tcsetattr(self._fd, termios.TCSANOW, self._before)
        if also_screen and self._writable():
            with suppress(OSError):
                os.write(self._out, RESET.encode())

    def _writable(self) -> bool:
        """The terminal would take a write now; a stalled or hung-up one would block or fail."""
        poll = select.poll()
        with suppress(OSError, ValueError):
            poll.register(self._out, select.POLLOUT)
            return any(mask & select.POLLOUT and not mask & select.POLLHUP for _, mask in poll.poll(0))
        return False
