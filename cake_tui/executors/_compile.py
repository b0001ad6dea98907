"""One compiler at work: its process group, its output, its limit."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

from cake_tui.config import child_environment
from cake_tui.errors import ENVIRONMENT, UserError
from cake_tui.executors._leash import NAME
from cake_tui.executors._log import Log
from cake_tui.executors._patience import Limit

GRACE_S = 1.0  # between asking a compiler to end and ending it


class Compile:
    """A running compiler in a folder of its own; `poll` moves it on, `end` ends it whatever it does."""

    def __init__(self, argv: tuple[str, ...], folder: Path, timeout_s: float, mark: str) -> None:
        self.folder = folder
        self.log = Log()
        self.timed_out = False
        self._paused = False
        self._kill = Limit(GRACE_S)
        self._limit = Limit(timeout_s)
        self._began = time.monotonic()
        try:
            self._process = subprocess.Popen(
                argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                start_new_session=True,
                # What a compiler that is killed leaves behind goes with its folder. Zig keeps intermediate files by the
                # source's name in a folder of all its runs: two at once would get each other's kernel.
                env=child_environment(
                    (), LC_ALL="C.UTF-8", TMPDIR=str(folder), ZIG_LOCAL_CACHE_DIR=str(folder), **{NAME: mark}
                ),
            )  # fmt: skip
        except OSError as error:
            raise UserError(
                f"compiler {shlex.quote(argv[0])}: {error.strerror}; install it or set CC", ENVIRONMENT
            ) from None
        assert self._process.stdout is not None
        self.fd = self._process.stdout.fileno()
        os.set_blocking(self.fd, False)

    @property
    def seconds(self) -> float:
        """Time since its start."""
        return time.monotonic() - self._began

    def poll(self) -> int | None:
        """Read output, mind the limit; return the exit status once it has ended."""
        self._read()
        status = self._process.poll()
        if status is not None:
            self._read()
            self.end()
            return status
        if self._limit.tick(counts=not self._paused) and not self.timed_out:
            self.timed_out = True
            self._kill = Limit(GRACE_S)
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)
        elif self.timed_out and self._kill.tick():
            self._signal(signal.SIGKILL)
        return None

    def pause(self, paused: bool) -> None:
        """Stop the whole group while a kernel is timed, or let it go on."""
        if paused != self._paused and not self.timed_out:
            self._paused = paused
            self._limit.tick(counts=not paused)
            self._signal(signal.SIGSTOP if paused else signal.SIGCONT)

    def end(self) -> None:
        """Kill what is left of the group and reap the compiler."""
        self._signal(signal.SIGKILL)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _read(self) -> None:
        if self._process.stdout is None or self._process.stdout.closed:
            return
        with contextlib.suppress(BlockingIOError):
            for _ in range(256):  # an endless stream must not keep the poller from its other work
                data = os.read(self.fd, 1 << 16)
                if not data:
                    return
                self.log.add(data)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
