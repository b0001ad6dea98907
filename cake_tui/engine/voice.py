"""All that an engine says to people: ``engine.log``, and progress lines where it runs in the foreground."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
import traceback
from pathlib import Path

from cake_tui.model import layout
from cake_tui.store.clock import utc_text
from cake_tui.store.rotation import RotatingFile


class Voice:
    """Writes the log; prints through a thread, so that a terminal that hangs or is gone never holds the run up."""

    def __init__(self, session: Path, *, foreground: bool, log_bytes: int) -> None:
        self._log = RotatingFile(session / layout.LOG, log_bytes, None if foreground else _take_stderr)
        self._printer = Printer() if foreground else None

    def say(self, text: str) -> None:
        """Log a line and print it in the foreground."""
        self.log(text)
        if self._printer is not None:
            self._printer.line(text)

    def log(self, text: str) -> None:
        """Log a line."""
        self._log.write(f"{utc_text(time.time())} {text}")

    def log_bug(self, error: BaseException) -> None:
        """Log a traceback."""
        self.log("".join(traceback.format_exception(error)).rstrip())

    def look(self) -> None:
        """Notice a log that was deleted; called now and then, for a silent engine holds the file's space too."""
        try:
            self._log.look()
        except OSError:
            return

    def close(self) -> None:
        """Write what is queued, for at most a second, and close."""
        if self._printer is not None:
            self._printer.close()
        self._log.close()


def _take_stderr(descriptor: int) -> None:
    """Send what C code and children write to stderr into the log as well."""
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)


class Printer:
    """Prints lines from a thread of its own; lines that the terminal does not take in time are dropped."""

    def __init__(self) -> None:
        self._lines: queue.Queue[str | None] = queue.Queue(maxsize=1000)
        self._encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        self._gone = False
        self._thread = threading.Thread(target=self._run, name="printer", daemon=True)
        self._thread.start()

    def line(self, text: str) -> None:
        """Queue one line."""
        if not self._gone:
            try:
                self._lines.put_nowait(text)
            except queue.Full:
                return

    def close(self) -> None:
        """Print what is queued, for at most a second."""
        try:
            self._lines.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(1.0)

    def _run(self) -> None:
        while (text := self._lines.get()) is not None:
            try:
                # Not through sys.stdout: its buffer would raise again, later, where nobody expects it.
                left = memoryview(f"{text}\n".encode(self._encoding, "replace"))
                while left:
                    left = left[os.write(1, left) :]
            except OSError:
                self._gone = True
                return
