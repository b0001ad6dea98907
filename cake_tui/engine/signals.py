"""Signals of an engine: the first asks for an orderly end, a second one ends it on the spot."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from cake_tui.errors import OK


class Signals:
    """SIGTERM and SIGINT end the run in order. So does SIGHUP in the foreground, unless it was ignored (nohup)."""

    def __init__(self, *, foreground: bool, continued: Callable[[], None]) -> None:
        self._foreground = foreground
        self._continued = continued
        self._before: dict[int, Any] = {}
        self._seen: int | None = None

    @property
    def exit_code(self) -> int:
        """128 + n after signal n, else 0."""
        return OK if self._seen is None else 128 + self._seen

    def install(self) -> None:
        """Take the signals over; in the main thread only."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._set(signal.SIGTERM, self._on_ending)
        self._set(signal.SIGINT, self._on_ending)
        self._set(signal.SIGCONT, self._on_continue)
        self._set(signal.SIGPIPE, signal.SIG_IGN)
        if not self._foreground:
            self._set(signal.SIGHUP, signal.SIG_IGN)
        elif signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            self._set(signal.SIGHUP, self._on_ending)

    def restore(self) -> None:
        """Give the signals back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def check(self, stop: Callable[[str], None]) -> None:
        """Call `stop` with the reason where a signal has come."""
        if self._seen is not None:
            stop(signal.Signals(self._seen).name)

    def _set(self, number: int, handler: Any) -> None:
        self._before[number] = signal.getsignal(number)
        signal.signal(number, handler)

    def _on_continue(self, number: int, frame: FrameType | None) -> None:
        self._continued()

    def _on_ending(self, number: int, frame: FrameType | None) -> None:
        if self._seen is not None:
            # Whoever asks twice means it; the record survives any death, and the guardian clears up.
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        self._seen = number
