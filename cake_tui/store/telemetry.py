"""Telemetry: one line a heartbeat with the monitor's reading and what the engine is at; display only."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from cake_tui.model.measure import Clock


class Beat(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of ``telemetry.jsonl``: the engine was alive at `mono`, within `boot`."""

    t: str
    mono: float
    boot: str
    pid: int = 0
    state: str = ""
    seq: int = 0  # of the journal, so that a viewer sees whether it is current
    candidates: int = 0
    effective: int = 0
    elapsed_s: float = 0.0
    best_us: float | None = None
    clock: Clock | None = None
    missing: dict[str, str] = {}
    note: str = ""


_DECODER = msgspec.json.Decoder(Beat)
_MOST_BYTES = 4 << 20  # read at once


class BeatReader:
    """Follows ``telemetry.jsonl``; the first `read` gives what stands at its end, damaged lines are passed over."""

    def __init__(self, path: Path, first_bytes: int = 128 << 10) -> None:
        self.path = path
        self._first_bytes = first_bytes
        self._read_to = -1
        self._inode = -1
        self._torn = b""  # a line still being written, or cut at its beginning

    def read(self) -> list[Beat]:
        """Return the beats written since the last call, oldest first; a rotated file is followed."""
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                if status.st_ino != self._inode or status.st_size < self._read_to:
                    self._inode, self._torn = status.st_ino, b""
                    self._read_to = max(0, status.st_size - self._first_bytes)
                file.seek(self._read_to)
                data = file.read(_MOST_BYTES)
        except OSError:
            return []
        self._read_to += len(data)
        *lines, self._torn = (self._torn + data).split(b"\n")
        found = (_decoded(line) for line in lines)
        return [beat for beat in found if beat is not None]


def _decoded(line: bytes) -> Beat | None:
    try:
        return _DECODER.decode(line)
    except (msgspec.MsgspecError, ValueError):
        return None


def encode(beat: Beat) -> str:
    """Return the beat's line."""
    return msgspec.json.encode(beat).decode()
