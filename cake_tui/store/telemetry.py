"""Telemetry: one line a heartbeat with the monitor's reading and what the engine is at; display only."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cake_tui.model.measure import Clock

NAME = "telemetry.jsonl"


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


def recent_beats(session: Path, last: int = 1) -> tuple[Beat, ...]:
    """Return the last beats on record, oldest first; damaged lines are passed over."""
    want = max(1, last)
    lines: list[bytes] = []
    for name in (NAME, NAME + ".1"):
        lines = _tail(session / name, want - len(lines)) + lines
        if len(lines) >= want:
            break
    beats = []
    for line in lines:
        try:
            beats.append(_DECODER.decode(line))
        except (msgspec.MsgspecError, ValueError):
            continue
    return tuple(beats[-want:])


def _tail(path: Path, lines: int) -> list[bytes]:
    if lines <= 0:
        return []
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 2048 * lines))
            found = file.read().split(b"\n")
    except OSError:
        return []
    # The first may be cut, the last still being written.
    complete = found[:-1] if size <= 2048 * lines else found[1:-1]
    return complete[-lines:]


def encode(beat: Beat) -> str:
    """Return the beat's line."""
    return msgspec.json.encode(beat).decode()
