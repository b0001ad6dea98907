"""The heartbeat: once a second a telemetry line, whatever the loop is doing; a monitor that hangs is left behind."""

from __future__ import annotations

import os
import threading

import msgspec

from cake_tui.model.history import History
from cake_tui.model.measure import Clock
from cake_tui.monitors import Monitor
from cake_tui.store.clock import Clocks, GapWatch, utc_text
from cake_tui.store.rotation import RotatingFile
from cake_tui.store.telemetry import Beat, encode


class Heartbeat:
    """Two threads: one reads the monitor, one writes the line and watches the clocks."""

    def __init__(
        self,
        history: History,
        file: RotatingFile,
        clocks: Clocks,
        watch: GapWatch,
        monitor: Monitor | None,
    ) -> None:
        self.note = ""
        self._history = history
        self._file = file
        self._clocks = clocks
        self._watch = watch
        self._monitor = monitor
        self._stop = threading.Event()
        self._reading: tuple[float, Clock, dict[str, str]] | None = None
        self._boot = clocks.boot()
        self._threads = [threading.Thread(target=self._beat, name="heartbeat", daemon=True)]
        if monitor is not None:
            self._threads.append(threading.Thread(target=self._read, name="monitor", daemon=True))

    def start(self) -> None:
        """Begin to beat."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End both threads; a monitor that hangs is left behind."""
        self._stop.set()
        for thread in self._threads:
            thread.join(0.5)
        self._file.close()

    def _period(self) -> float:
        return settled_period(self._history.settings)

    def _beat(self) -> None:
        due = self._clocks.mono()
        while True:
            self._watch.look(beat=True)
            self._file.write(encode(self._line()))
            due = max(due + self._period(), self._clocks.mono() - self._period())
            if self._stop.wait(max(0.0, due - self._clocks.mono())):
                return

    def _line(self) -> Beat:
        history, now = self._history, self._clocks.mono()
        clock: Clock | None = None
        missing: dict[str, str] = {}
        if self._reading is not None:
            at, clock, missing = self._reading
            if now - at > max(3.0, 3 * self._period()):
                clock, missing = None, {"clock": f"no reading for {now - at:.0f} s: the monitor hangs"}
        elapsed = history.elapsed_s
        if history.state == "running" and history.last_boot == self._boot:
            elapsed += max(0.0, now - history.last_mono)
        return Beat(
            t=utc_text(self._clocks.wall()),
            mono=round(now, 3),
            boot=self._boot,
            pid=os.getpid(),
            state=history.state,
            seq=history.seq,
            candidates=len(history.rows),
            effective=history.effective,
            elapsed_s=round(elapsed, 3),
            best_us=history.incumbent_us,
            clock=clock,
            missing=missing,
            note=self.note,
        )

    def _read(self) -> None:
        if self._monitor is None:
            return
        while True:
            clock = self._monitor.read()
            self._reading = (self._clocks.mono(), clock, self._monitor.missing())
            if self._stop.wait(self._period()):
                return


def settled_period(settings: dict[str, object]) -> float:
    """Return the heartbeat's period in seconds from flat settings."""
    try:
        return max(0.05, float(msgspec.convert(settings.get("heartbeat", 1.0), float)))
    except msgspec.ValidationError:
        return 1.0
