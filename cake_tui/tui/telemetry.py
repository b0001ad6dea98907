"""The 1 Hz telemetry of a session: the latest reading, a short history of each, since when a reading is missing."""

from __future__ import annotations

from collections import deque
from pathlib import Path

from cake_tui.model.measure import Clock
from cake_tui.store.telemetry import Beat, BeatReader

FIELDS = (
    "rate", "load", "steal_pct", "temperature_c", "sm_mhz", "memory_mhz", "power_w", "foreign_processes",
)  # fmt: skip
BUCKET_S = 10.0
BUCKETS = 60
RECORD_BYTES = 4 << 20  # of a record's readings that a replay keeps


class Telemetry:
    """What the heartbeat's lines say, folded for the clocks pane; `missing_since` and `why` name what is not read."""

    def __init__(self, path: Path) -> None:
        self._reader = BeatReader(path)
        self._record: list[Beat] | None = None  # of a replay
        self._next = 0
        self._shown_to = 0.0
        self._forget()

    def _forget(self) -> None:
        self.t = ""
        self.mono = 0.0
        self.boot = ""
        self.missing_since: dict[str, str] = {}
        self.why: dict[str, str] = {}
        self.greatest: dict[str, float] = {}
        self._latest: Clock | None = None
        self._buckets: deque[tuple[int, dict[str, list[float]]]] = deque(maxlen=BUCKETS)

    def poll(self) -> bool:
        """Read what came since the last call; true where a new reading is there."""
        beats = self._reader.read()
        for beat in beats:
            self._take(beat)
        return bool(beats)

    def rewind(self, boot: str, mono: float, stamp: str) -> None:
        """Show the readings up to a moment of the record, all of them read anew where time went back."""
        if self._record is None or mono < self._shown_to:
            self._forget()
            self._record = self._record or BeatReader(self._reader.path, RECORD_BYTES).read()
            self._next = 0
        self._shown_to = mono
        while self._next < len(self._record):
            beat = self._record[self._next]
            if (beat.mono > mono) if beat.boot == boot else (beat.t > stamp):
                break
            self._take(beat)
            self._next += 1

    def _take(self, beat: Beat) -> None:
        self.t, self.mono, self.boot, self.why = beat.t, beat.mono, beat.boot, beat.missing
        self._latest = beat.clock
        slot = int(beat.mono // BUCKET_S)
        if not self._buckets or self._buckets[-1][0] != slot:
            self._buckets.append((slot, {}))
        for name in FIELDS:
            value = self.value(name)
            if value is None:
                self.missing_since.setdefault(name, self.t)
                continue
            self.missing_since.pop(name, None)
            self.greatest[name] = max(value, self.greatest.get(name, value))
            self._buckets[-1][1].setdefault(name, []).append(value)

    @property
    def latest(self) -> Clock | None:
        """The latest reading, None before the first."""
        return self._latest

    def value(self, name: str) -> float | None:
        """The latest reading of a field, or None."""
        found = getattr(self._latest, name, None)
        return None if found is None else float(found)

    def history(self, name: str) -> list[float | None]:
        """Medians over 10 s each, oldest first; None where nothing was read."""
        if not self._buckets:
            return []
        by_slot = {slot: values.get(name) for slot, values in self._buckets}
        last = self._buckets[-1][0]
        out: list[float | None] = []
        for slot in range(last - BUCKETS + 1, last + 1):
            values = by_slot.get(slot)
            out.append(sorted(values)[len(values) // 2] if values else None)
        return out
