"""The inbox: requests as files, sent by a rename, read one by one; hostile files are refused with a reason."""

from __future__ import annotations

import errno
import heapq
import os
import re
import stat
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from cake_tui.config import user_name
from cake_tui.errors import printable
from cake_tui.model import layout
from cake_tui.model.event import Event, RequestRefused, RequestTaken, RequestUndone
from cake_tui.store.files import write_whole
from cake_tui.store.reading import JournalReader

Kind = Literal[
    "pause", "resume", "stop", "inject", "undo", "enable", "disable", "actions", "set", "mark", "revert",
    "profile",
]  # fmt: skip
KINDS: tuple[str, ...] = get_args(Kind)
VERSION = 1
LARGEST = 64 * 1024
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}\Z")
_LONGEST_WHO = 80
_LEFT_BEHIND_S = 3600.0


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=False):
    """What somebody asks of a running session; `id` is made by the sender and acts once at most."""

    id: str
    who: str
    what: Kind
    body: dict[str, Any] = {}
    v: int = VERSION


class Refusal(msgspec.Struct, frozen=True):
    """A file that is no request, and why."""

    id: str
    reason: str


# -- the sender's side ---------------------------------------------------------------------------------


def new_id() -> str:
    """An id that sorts by time and that nobody else makes."""
    return f"{time.time_ns():020d}-{uuid.uuid4().hex[:12]}"


def send(session: Path, what: Kind, body: dict[str, Any] | None = None, *, who: str = "", id: str = "") -> str:  # noqa: A002
    """Put a request into the session's inbox and return its id; it is there whole or not at all.

    Sending an id again after a lost connection is safe: it acts once. Raises OSError.
    """
    request = Request(id or new_id(), _plain(who or user_name())[:_LONGEST_WHO], what, _plain(body or {}))
    content = msgspec.json.encode(request)
    inbox = session / layout.INBOX
    write_whole(inbox / f"{request.id}.json", content)
    return request.id


def _plain(value: Any) -> Any:
    """Bytes of the command line that are no UTF-8 become U+FFFD, so that they can be written at all."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if isinstance(value, dict):
        return {_plain(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


class Answers:
    """Waits for what became of requests; make it before sending, so that no answer can be missed.

    With `everything` it reads the journal from its start, for requests sent earlier.
    """

    def __init__(self, session: Path, *, everything: bool = False) -> None:
        path = session / layout.JOURNAL
        self._reader = JournalReader(path, 0 if everything else _line_start(path))
        self._seen: dict[str, Event] = {}

    def wait_for(self, id: str, timeout_s: float) -> Event | None:  # noqa: A002
        """Return the event that answers the request, or None where none came in time (it may come yet)."""
        deadline = time.monotonic() + timeout_s
        while True:
            for event in self._reader.read():
                if isinstance(event, RequestTaken | RequestRefused | RequestUndone):
                    self._seen.setdefault(event.id, event)
            if id in self._seen:
                return self._seen[id]
            if time.monotonic() >= deadline:
                return None
            time.sleep(0.05)


def wait_for(session: Path, id: str, timeout_s: float = 10.0) -> Event | None:  # noqa: A002
    """Return what the journal says about a request sent at any time; None where nothing came in time."""
    return Answers(session, everything=True).wait_for(id, timeout_s)


def _line_start(path: Path) -> int:
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            file.seek(max(0, size - (1 << 20)))
            tail = file.read()
    except OSError:
        return 0
    end = tail.rfind(b"\n")
    return size - len(tail) + end + 1 if end >= 0 else 0


# -- the engine's side ---------------------------------------------------------------------------------


class Inbox:
    """Reads requests in the order of their ids; a file leaves the inbox once the journal has its answer."""

    def __init__(self, session: Path) -> None:
        self.folder = session / layout.INBOX
        self._stuck: set[str] = set()  # answered, but they would not go

    def waiting(self, most: int = 100) -> Iterator[tuple[Path, Request | Refusal]]:
        """Yield at most `most` files with what they hold. Call `done` with the path after its answer is journaled."""
        try:
            with os.scandir(self.folder) as entries:
                names = [entry.name for entry in entries if not entry.name.startswith(".")]
        except OSError:
            return
        fresh = [name for name in names if name not in self._stuck] if self._stuck else names
        for name in heapq.nsmallest(most, fresh):
            path = self.folder / name
            yield path, _read(path)

    def done(self, path: Path) -> None:
        """Remove an answered file. What cannot be unlinked (a folder) is moved out of sight."""
        try:
            path.unlink()
        except FileNotFoundError:
            return
        except OSError:
            try:
                path.rename(path.with_name(f".refused-{path.name[:80]}-{time.time_ns()}"))
            except OSError:
                self._stuck.add(path.name)

    def sweep(self) -> None:
        """Remove what killed senders left under temporary names."""
        for left in self.folder.glob(".*.new"):
            try:
                if time.time() - left.lstat().st_mtime > _LEFT_BEHIND_S:
                    left.unlink()
            except OSError:
                continue


def _read(path: Path) -> Request | Refusal:
    """Read one file without trusting anything about it."""
    name = path.name.removesuffix(".json")
    shown = name if _ID.match(name) else printable(name.encode("utf-8", "replace").decode())[:80]
    if path.suffix != ".json" or not _ID.match(name):
        return Refusal(shown, "not a request: its name is no <id>.json")
    try:
        content = _content(path)
    except OSError as error:
        why = "a link" if error.errno == errno.ELOOP else f"unreadable ({error.strerror})"
        return Refusal(shown, f"not a request: {why}")
    except ValueError as error:
        return Refusal(shown, f"not a request: {error}")
    try:
        version = msgspec.json.decode(content, type=_Version).v
        if version != VERSION:
            return Refusal(shown, f"request of version {version}; this engine reads version {VERSION}")
        request = msgspec.json.decode(content, type=Request)
        msgspec.json.encode(request)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return Refusal(shown, f"not a request: {str(error)[:200]}")
    if request.id != name:
        return Refusal(shown, f"its id {request.id[:80]!r} is not its file's name")
    return msgspec.structs.replace(request, who=request.who[:_LONGEST_WHO])


class _Version(msgspec.Struct):
    v: int = VERSION


def _content(path: Path) -> bytes:
    # O_NONBLOCK: opening a FIFO that nobody writes to must not hang the run.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("no plain file")
        if status.st_size > LARGEST:
            raise ValueError(f"{status.st_size} bytes, allowed: at most {LARGEST}")
        content = b""
        while block := os.read(descriptor, LARGEST + 1):
            content += block
            if len(content) > LARGEST:
                raise ValueError(f"allowed: at most {LARGEST} bytes")
        return content
    finally:
        os.close(descriptor)
