"""Read a journal: complete lines only, whatever they hold; damage is skipped and counted, never raised."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from cake_tui.model.event import VERSION, AnyEvent, Event

_CHUNK = 1 << 20
_DECODER = msgspec.json.Decoder(AnyEvent)
_SCANNER = json.JSONDecoder()
_UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
# A damaged line longer than this is not searched for events: no event of ours is near it.
_SEARCHED_BYTES = 4 << 20
_LONGEST = 64 << 20  # a line beyond this is none; reading goes on behind it


class Skipped(msgspec.Struct):
    """What a reader passed over: lines that hold no event it knows, and events of a newer version."""

    lines: int = 0
    newer: int = 0
    first_line: int = 0


def decode(line: bytes, skipped: Skipped | None = None, number: int = 0) -> tuple[Event, ...]:
    """Return the events of one line: one, several where records are glued together, or none.

    Blocks of NUL, halves of records and of UTF-8 characters are passed over; kinds and fields of other
    versions too. Never raises.
    """
    try:
        event = _DECODER.decode(line)
    except _UNREADABLE:
        found = tuple(_salvage(line))
        if not found and skipped is not None and line.strip(b"\0 \t\r"):
            skipped.lines += 1
            skipped.first_line = skipped.first_line or number
        return found
    if event.v > VERSION:
        if skipped is not None:
            skipped.newer += 1
        return ()
    return (event,)


def _salvage(line: bytes) -> Iterator[Event]:
    """Yield the whole events inside a damaged line."""
    if len(line) > _SEARCHED_BYTES:
        return
    text = line.replace(b"\0", b"").decode("utf-8", "replace")
    position = text.find('{"')
    while position >= 0:
        try:
            value, end = _SCANNER.raw_decode(text, position)
        except (ValueError, RecursionError):
            position = text.find('{"', position + 1)
            continue
        event = _event_of(value)
        if event is not None:
            yield event
        position = text.find('{"', end)


def _event_of(value: Any) -> Event | None:
    # Parts of events have a kind as well (outcomes); only an event has a sequence number beside it.
    if not isinstance(value, dict) or "kind" not in value or "seq" not in value:
        return None
    try:
        event: Event = msgspec.convert(value, AnyEvent)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return event if event.v <= VERSION else None


class JournalReader:
    """Follows a growing journal: each call returns the events of the lines completed since the last one.

    A line still being written waits for its end. A file that shrank below what was read, or was replaced,
    is read again from its start and `restarts` counts it: sequence numbers tell what is new.
    """

    def __init__(self, path: Path, offset: int = 0, line: int = 0) -> None:
        self.path = path
        self.offset = offset  # where the first line not read yet begins
        self.line = line  # complete lines read
        self.start = offset  # where the line of the last event begins
        self.restarts = 0
        self.skipped = Skipped()
        self._inode: int | None = None

    def read(self) -> Iterator[Event]:
        """Yield new events; stops at the last complete line."""
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return
        with file:
            self._notice_replacement(file.fileno())
            file.seek(self.offset)
            rest = b""
            while chunk := file.read(_CHUNK):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self.start = self.offset
                    self.offset += len(line) + 1
                    self.line += 1
                    if line:
                        yield from decode(line, self.skipped, self.line)
                if len(rest) > _LONGEST:
                    self.offset, rest = self.offset + len(rest), b""
                    self.skipped.lines += 1

    def _notice_replacement(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        if self.offset > status.st_size or (self._inode is not None and status.st_ino != self._inode):
            self.offset, self.line = 0, 0
            self.restarts += 1
        self._inode = status.st_ino
