"""Textual's driver made safe: stopping and going on, bytes that are no text, a redraw that restores the modes too."""

from __future__ import annotations

import os
import signal
import sys
import termios
from contextlib import suppress
from typing import Any, TextIO

from textual import constants, events
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

# No key of ours needs the protocol, and a lost link would leave it switched on at the other end.
constants.DISABLE_KITTY_KEY = True  # type: ignore[misc]


MOST_WAITING = (24, 96 << 10)  # writes and characters on their way to a terminal that does not read
LOOK_AGAIN_S = 0.2


class _Counted:
    """A text file that counts what it has been able to write."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.writes = self.characters = 0

    def write(self, text: str) -> None:
        self._file.write(text)
        self.writes, self.characters = self.writes + 1, self.characters + len(text)

    def flush(self) -> None:
        self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()


class TerminalDriver(LinuxDriver):
    """Never waits for a terminal that does not read: what finds no room is dropped, and the screen drawn anew later.

    `reassert` puts the terminal's modes back as the viewer needs them, whoever changed them meanwhile.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._ours: list[Any] | None = None
        self._counted = _Counted(self._file)  # type: ignore[arg-type]
        self._file = self._counted  # type: ignore[assignment]
        self._writes = self._characters = 0  # handed on so far
        self._dropped = False
        self._size = self._size or self._get_terminal_size()

    def write(self, data: str) -> None:
        """Hand on to the writing thread, or drop where too much waits there already."""
        writes, characters = MOST_WAITING
        if self._writes - self._counted.writes >= writes or self._characters - self._counted.characters > characters:
            if not self._dropped:
                self._dropped = True
                self._loop.call_later(LOOK_AGAIN_S, self._catch_up)
            return
        self._writes, self._characters = self._writes + 1, self._characters + len(data)
        super().write(data)

    def _catch_up(self) -> None:
        """Draw the whole screen once the terminal has read what waited."""
        if self._writes > self._counted.writes:
            self._loop.call_later(LOOK_AGAIN_S, self._catch_up)
        else:
            self._dropped = False
            self._awake()

    def _get_terminal_size(self) -> tuple[int, int]:
        """The terminal's own size: inherited COLUMNS and LINES are some other terminal's."""
        for descriptor in (self.fileno, sys.__stderr__.fileno() if sys.__stderr__ else 2):
            with suppress(OSError, ValueError):
                columns, lines = os.get_terminal_size(descriptor)
                if columns > 0 and lines > 0:
                    return columns, lines
        return super()._get_terminal_size()

    def start_application_mode(self) -> None:
        """Begin, and remember the line discipline that we need."""
        super().start_application_mode()  # type: ignore[no-untyped-call]
        with suppress(termios.error, OSError):
            self._ours = termios.tcgetattr(self.fileno)

    def reassert(self) -> None:
        """Raw input, alternate screen, mouse, focus and paste reports, no cursor, a blank screen."""
        if self._ours is None or self._writer_thread is None:
            return
        with suppress(termios.error, OSError):
            termios.tcsetattr(self.fileno, termios.TCSANOW, self._ours)
        self.write("\x1b[?1049h")
        self._enable_mouse_support()
        self.write("\x1b[?25l\x1b[?1004h\x1b[?2004h\x1b[?7l\x1b[0m\x1b[2J")
        self.flush()

    def run_input_thread(self) -> None:
        """Read keys; bytes that are no UTF-8 are dropped, they end nothing."""
        while not self.exit_event.is_set():
            try:
                super().run_input_thread()
                return
            except UnicodeDecodeError:
                continue
            except OSError:
                return  # the terminal is gone: the guard ends the process

    def process_message(self, message: Message) -> None:
        """Pass keys on; ctrl+c ends a viewer also where the loop is held up and never sees it."""
        if isinstance(message, events.Key) and message.key in ("ctrl+c", "ctrl+q"):
            self._app.leaving()  # type: ignore[attr-defined]
        super().process_message(message)

    # Handlers only wake the loop: writing from within one could meet the writer's own lock.

    def _sigtstp_application(self, *_: Any) -> None:
        self._loop.call_soon_threadsafe(self._sleep)

    def _sigcont_application(self, *_: Any) -> None:
        if not self._must_signal_resume:  # stopped by SIGSTOP: nobody gave the terminal back, nor its modes to us
            self._loop.call_soon_threadsafe(self._awake)

    def _sleep(self) -> None:
        """Give the terminal back and stop; what follows runs when somebody continues us."""
        self._must_signal_resume = True
        self.suspend_application_mode()
        os.kill(os.getpid(), signal.SIGSTOP)
        for _ in range(100):  # in the background the terminal refuses us: we are stopped again until it is ours
            self.resume_application_mode()
            if not self._must_signal_resume:
                self._awake()
                return

    def _awake(self) -> None:
        self._app.call_later(self._app.action_redraw)  # type: ignore[attr-defined]
