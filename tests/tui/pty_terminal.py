"""A real pseudo-terminal around a command: bytes as they come, the screen that pyte makes of them, the tty's modes."""

from __future__ import annotations

import contextlib
import fcntl
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
from types import TracebackType

import pyte

from tests.engine.rest import TICK_S, asleep

ROOT = Path(__file__).parents[2]


class PtyTerminal:
    """Runs ``python -m cake_tui ARGUMENTS`` (or `code`) on a pty of its own session."""

    def __init__(
        self, *arguments: str, columns: int = 120, rows: int = 40, code: str | None = None, ignore_hangup: bool = False,
        **environment: str,
    ) -> None:  # fmt: skip
        self.master, slave = pty.openpty()
        self.resize(columns, rows, tell=False)
        self.before = termios.tcgetattr(slave)
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.received = b""
        command = [sys.executable, *(["-c", code] if code else ["-m", "cake_tui"]), *arguments]

        def own_terminal() -> None:
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            if ignore_hangup:
                signal.signal(signal.SIGHUP, signal.SIG_IGN)

        env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "SSH_CONNECTION", "COLORTERM")}
        env |= {
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            **environment,
        }
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=env, cwd=ROOT, preexec_fn=own_terminal, close_fds=True
        )
        self.slave = slave  # kept open, so that its modes can be read after the process has ended

    def __enter__(self) -> PtyTerminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(60)
        for descriptor in (self.master, self.slave):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def read(self, seconds: float) -> bytes:
        """Read for so long; returns what came."""
        out = b""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            ready, _, _ = select.select([self.master], [], [], left)
            if not ready:
                break
            try:
                data = os.read(self.master, 65536)
            except OSError:
                break
            if not data:
                break
            out += data
        self.received += out
        self._stream.feed(out)
        return out

    def read_some(self, seconds: float) -> bytes:
        """Wait for the first bytes and return them at once."""
        if not select.select([self.master], [], [], seconds)[0]:
            return b""
        data = os.read(self.master, 65536)
        self.received += data
        self._stream.feed(data)
        return data

    def text(self) -> str:
        """The screen as text."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    def scribble(self, data: bytes) -> None:
        """Write onto the screen past the viewer, as another program does."""
        self._stream.feed(data)

    def shows(self, text: str) -> bool:
        """Read what came; tell whether the screen shows a text."""
        self.read(0.005)
        return text in self.text()

    def wait_for(self, text: str, seconds: float = 60.0) -> str:
        """Read until the screen shows a text; fails with the screen otherwise."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.shows(text):
                return self.text()
            self.read(0.1)
        raise AssertionError(f"{text!r} never came; the screen:\n{self.text()}")

    def settle(self, quiet: float = 1.5, seconds: float = 60.0) -> None:
        """Read until nothing came for a while in which the process slept: what waits for a processor is not at rest."""
        until, slept = time.monotonic() + seconds, 0.0
        while slept < quiet:
            assert time.monotonic() < until, f"the screen never came to rest:\n{self.text()}"
            if self.read(TICK_S):
                slept = 0.0
            elif asleep(self.process.pid):
                slept += TICK_S

    def send(self, keys: str) -> None:
        """Type."""
        os.write(self.master, keys.encode())

    def resize(self, columns: int, rows: int, *, tell: bool = True) -> None:
        """Change the window's size; the process is told by SIGWINCH."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if tell:
            self.screen.resize(rows, columns)

    def hang_up(self) -> None:
        """Close our end, as a lost connection does."""
        os.close(self.slave)
        os.close(self.master)

    def has_ended(self) -> bool:
        """Read what came; tell whether the process has ended."""
        self.read(0.005)
        return self.process.poll() is not None

    def exit_code(self, seconds: float = 60.0) -> int:
        """Wait for the end, reading on; returns the exit code, negative for a signal."""
        until = time.monotonic() + seconds
        while not self.has_ended() and time.monotonic() < until:
            pass
        assert self.process.poll() is not None, f"still running after {seconds} s:\n{self.text()}"
        self.read(0.1)
        return self.process.returncode

    def modes_restored(self) -> bool:
        """Echo, canonical mode and all else are as before, and every screen mode switched on was switched off."""
        if termios.tcgetattr(self.slave) != self.before:
            return False
        return all(self._last(on) <= self._last(off) for on, off in _PAIRS)

    def _last(self, sequence: bytes) -> int:
        return self.received.rfind(sequence)


_PAIRS = (
    *((f"\x1b[?{mode}h".encode(), f"\x1b[?{mode}l".encode()) for mode in (1049, 1000, 1003, 1006, 1004, 2004)),
    (b"\x1b[?25l", b"\x1b[?25h"),
    (b"\x1b[>", b"\x1b[<u"),
)
