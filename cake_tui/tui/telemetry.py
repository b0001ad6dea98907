"""The 1 Hz telemetry of a session: the latest reading, a short history of each, since when a reading is missing."""

from __future__ import annotations

import json
import math
import os
from collections import deque
from pathlib import Path
from typing import Any

FIELDS = (
    "rate", "load", "steal_pct", "temperature_c", "sm_mhz", "memory_mhz", "power_w", "foreign_processes",
)  # fmt: skip
BUCKET_S = 10.0
BUCKETS = 60
FIRST_READ = 128 << 10


class Telemetry:
    """Reads ``telemetry.jsonl`` as it grows; rotation and torn lines are no event of note."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.latest: dict[str, Any] = {}
        self.t = ""
        self.mono = 0.0
        self.boot = ""
        self.missing_since: dict[str, str] = {}
        self.why: dict[str, str] = {}
        self.greatest: dict[str, float] = {}
        self._buckets: deque[tuple[int, dict[str, list[float]]]] = deque(maxlen=BUCKETS)
        self._read_to = -1
        self._inode = -1
        self._tail = b""

    def poll(self) -> bool:
        """Read what came since the last call; true where a new reading is there."""
        try:
            with self.path.open("rb") as file:
                found = os.fstat(file.fileno())
                if found.st_ino != self._inode or found.st_size < self._read_to:
                    self._inode, self._tail = found.st_ino, b""
                    self._read_to = max(0, found.st_size - FIRST_READ)
                    # The first line may be cut; it is dropped as a torn one.
                file.seek(self._read_to)
                data = file.read(4 << 20)
        except OSError:
            return False
        if not data:
            return False
        self._read_to += len(data)
        *lines, self._tail = (self._tail + data).split(b"\n")
        taken = [self._take(line) for line in lines]
        return True in taken

    def _take(self, line: bytes) -> bool:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            return False
        if not isinstance(found, dict):
            return False
        inner = found.get("clock")
        reading = {**found, **inner} if isinstance(inner, dict) else found
        self.t = str(found.get("t") or self.t)
        self.mono = _number(reading.get("mono")) or _number(found.get("mono")) or self.mono
        self.boot = str(found.get("boot") or self.boot)
        why = found.get("missing")
        if isinstance(why, dict):
            self.why = {str(key): str(text) for key, text in why.items()}
        self.latest = reading
        slot = int(self.mono // BUCKET_S)
        if not self._buckets or self._buckets[-1][0] != slot:
            self._buckets.append((slot, {}))
        for name in FIELDS:
            value = _number(reading.get(name))
            if value is None:
                self.missing_since.setdefault(name, self.t)
                continue
            self.missing_since.pop(name, None)
            self.greatest[name] = max(value, self.greatest.get(name, value))
            self._buckets[-1][1].setdefault(name, []).append(value)
        return True

    def value(self, name: str) -> float | None:
        """The latest reading of a field, or None."""
        return _number(self.latest.get(name))

    def words(self, name: str) -> tuple[str, ...]:
        """A field that holds texts (throttle reasons)."""
        found = self.latest.get(name)
        return tuple(map(str, found)) if isinstance(found, list) else ()

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


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)
