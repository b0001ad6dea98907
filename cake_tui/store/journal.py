"""The journal: events appended one line each, each synced before the next is written; a torn end is set aside."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from cake_tui.model.event import VERSION, AnyEvent, Event
from cake_tui.store.clock import Clocks, utc_text
from cake_tui.store.files import NO_SPACE, open_private, sync_folder

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(AnyEvent)
_SURROGATE = re.compile("[\ud800-\udfff]")
_LARGEST = 1.7976931348623157e308

OnFull = Callable[[Path, int, OSError], None]
"""Called when a write of so many bytes found no space; returns when it may be tried again."""


class Torn(msgspec.Struct, frozen=True):
    """A half-written last line that was set aside."""

    path: Path
    line: int
    size_bytes: int
    kept_in: Path

    @property
    def text(self) -> str:
        """One line: record file, line, bytes, where they are now."""
        return (
            f"{self.path}: line {self.line} was half written: {self.size_bytes} bytes set aside in {self.kept_in.name}"
        )


class Journal:
    """The one writer of a session's journal; hold the session's lock before making one.

    A sync goes on beside the work that follows (it is the longest part of an append) and is over before the next
    event is written: a power loss takes the last event at most. `settle` is for what must not come before it.
    """

    def __init__(self, path: Path, clocks: Clocks, seq: int = 0, on_full: OnFull | None = None) -> None:
        self.path = path
        self.seq = seq
        self._clocks = clocks
        self._boot = clocks.boot()
        self._on_full = on_full
        self._file = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.size_bytes = os.fstat(self._file).st_size
        self._syncer = _Syncer(self._file)
        self._unsynced = b""  # lines at the file's end that a failed sync may have lost

    def append(self, *events: Event, sync: bool = True) -> tuple[Event, ...]:
        """Stamp the events, append them, begin their sync, and return them as they stand in the file.

        They survive the death of this process at once, and a power loss after the sync, with `sync` false the next.

        All of them are in the file, or none: a write that fails half-way is taken back. Without space it
        waits in `on_full` and tries again; any other OSError travels on.
        """
        stamped = tuple(self._stamp(index, event) for index, event in enumerate(events, 1))
        lines = b"".join(encode(event) + b"\n" for event in stamped)
        self.settle()
        self._in_spite_of_space(lambda: self._write(lines), len(lines))
        self.seq += len(stamped)
        self.size_bytes += len(lines)
        self._unsynced += lines
        if sync:
            self._syncer.begin()
        return stamped

    def settle(self) -> None:
        """Wait until the last sync is over; lines that it may have lost are written again. Raises as `append`."""
        if not self._syncer.at_work:
            return
        try:
            self._syncer.end()
        except OSError as error:
            if error.errno not in NO_SPACE or self._on_full is None:
                raise
            lost = self._unsynced
            self.size_bytes -= len(lost)
            self._take_back()
            self._on_full(self.path, len(lost), error)
            self._in_spite_of_space(lambda: self._write(lost, sync=True), len(lost))
            self.size_bytes += len(lost)
        self._unsynced = b""

    def is_in_place(self) -> bool:
        """Tell whether the file still has its name: nobody reads what is appended to a deleted one."""
        try:
            named, ours = self.path.lstat(), os.fstat(self._file)
        except OSError:
            return False
        return (named.st_ino, named.st_dev) == (ours.st_ino, ours.st_dev)

    def close(self) -> None:
        """End the last sync and close the file."""
        try:
            self.settle()
        finally:
            self._syncer.close()
            os.close(self._file)

    def _stamp(self, index: int, event: Event) -> Event:
        return msgspec.structs.replace(
            event,
            v=VERSION,
            seq=self.seq + index,
            t=utc_text(self._clocks.wall()),
            mono=round(self._clocks.mono(), 6),
            boot=self._boot,
        )

    def _in_spite_of_space(self, write: Callable[[], None], size: int) -> None:
        while True:
            try:
                return write()
            except OSError as error:
                self._take_back()
                if error.errno not in NO_SPACE or self._on_full is None:
                    raise
                self._on_full(self.path, size, error)

    def _write(self, lines: bytes, *, sync: bool = False) -> None:
        left = memoryview(lines)
        while left:
            left = left[os.write(self._file, left) :]
        if sync:
            os.fsync(self._file)

    def _take_back(self) -> None:
        os.ftruncate(self._file, self.size_bytes)


class _Syncer:
    """Syncs a file in a thread of its own, one sync at a time; two locks hand it over, for it is done of every step."""

    def __init__(self, file: int) -> None:
        self.at_work = False
        self._file = file
        self._asked, self._over = threading.Lock(), threading.Lock()
        self._asked.acquire()
        self._over.acquire()
        self._error: OSError | None = None
        self._thread: threading.Thread | None = None  # from the first sync on

    def begin(self) -> None:
        """Begin a sync; `end` must come before the next."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
            self._thread.start()
        self.at_work = True
        self._asked.release()

    def end(self) -> None:
        """Wait until the sync is over; raises OSError where it failed."""
        self._over.acquire()
        self.at_work = False
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """End the thread; no sync may be at work."""
        if self._thread is not None:
            self._file = -1
            self._asked.release()
            self._thread.join()

    def _run(self) -> None:
        while True:
            self._asked.acquire()
            if self._file < 0:
                return
            try:
                os.fsync(self._file)
                self._error = None
            except OSError as error:
                self._error = error
            self._over.release()


def encode(event: Event) -> bytes:
    """Return one line, without its end, that reads back as the same event; raises ValueError where none does.

    Lone surrogates (names that are no UTF-8) become U+FFFD, infinities the largest number, and a NaN is
    null, which only a field that may be unknown can read back.
    """
    try:
        line = _ENCODER.encode(event)
        _DECODER.decode(line)
        return line
    except (msgspec.MsgspecError, UnicodeEncodeError):
        line = _ENCODER.encode(_cleaned(msgspec.to_builtins(event)))
    try:
        _DECODER.decode(line)
    except msgspec.MsgspecError as error:
        raise ValueError(f"event {type(event).__name__} cannot be read back: {error}") from None
    return line


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("�", value)
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return _LARGEST if value > 0 else -_LARGEST
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(inner) for inner in value]
    return value


def set_torn_end_aside(path: Path) -> Torn | None:
    """Mend a journal whose last line has no end; return what was set aside, None where nothing was torn.

    A last line that is a whole event gets its line end. Anything else moves to a side file beside the
    journal, which is synced before the journal is cut, so that a second death loses nothing.
    """
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return None
    with path.open("rb") as file:
        start = _start_of_last_line(path)
        if start == size:
            return None
        file.seek(start)
        stub = file.read()
        file.seek(0)
        line = 1 + _line_ends(file, start)
    if _is_whole(stub):
        descriptor = open_private(path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(descriptor, b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return None
    kept_in = path.with_name(f"{path.name}.torn-{line}")
    _keep(kept_in, stub)
    descriptor = open_private(path, os.O_WRONLY)
    try:
        os.ftruncate(descriptor, start)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return Torn(path, line, len(stub), kept_in)


def _keep(path: Path, stub: bytes) -> None:
    # An earlier stub of the same line may be there: keep both.
    descriptor = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(descriptor, stub + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_folder(path.parent)


def _is_whole(stub: bytes) -> bool:
    """Tell whether a line without an end is a whole event, of whatever kind and version."""
    try:
        value = json.loads(stub)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "kind" in value and "seq" in value


def _start_of_last_line(path: Path) -> int:
    """Offset right behind the last line end."""
    with path.open("rb") as file:
        position = file.seek(0, os.SEEK_END)
        while position > 0:
            step = min(1 << 16, position)
            position -= step
            file.seek(position)
            found = file.read(step).rfind(b"\n")
            if found >= 0:
                return position + found + 1
    return 0


def _line_ends(file: Any, until: int) -> int:
    count = 0
    while until > 0:
        block = file.read(min(1 << 20, until))
        if not block:
            break
        count += block.count(b"\n")
        until -= len(block)
    return count
