"""The snapshot: the fold and how far it read, so that nobody folds a long journal from its start."""

from __future__ import annotations

import zlib
from pathlib import Path

import msgspec

from cake_tui.errors import DAMAGED, ENVIRONMENT, UserError
from cake_tui.model import layout
from cake_tui.model.history import History
from cake_tui.model.row import Row
from cake_tui.store.files import what_the_machine_lacks, write_whole
from cake_tui.store.reading import JournalReader
from cake_tui.store.summary import Summary, summarise

VERSION = 2


SMALL_BYTES = 256 << 10  # read and folded within milliseconds


class Head(msgspec.Struct, frozen=True):
    """The first `offset` bytes (`lines` lines) of the journal whose first line has checksum `head`, in short."""

    v: int
    seq: int
    offset: int
    lines: int
    head: int
    summary: Summary


class Snapshot(Head, frozen=True):
    """All of it. `history` has no rows: each of `rows` is decoded by itself, for that takes half the memory."""

    history: History
    rows: list[msgspec.Raw]


class Fold(msgspec.Struct):
    """A history as of now, where its reader stands, and what a person should hear about how it was made."""

    history: History
    reader: JournalReader
    notices: tuple[str, ...] = ()


_DECODER = msgspec.json.Decoder(Snapshot)
_ROW_DECODER = msgspec.json.Decoder(Row)
_HEAD_DECODER = msgspec.json.Decoder(Head)
_ENCODER = msgspec.json.Encoder()
_UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)


def write(folder: Path, history: History, offset: int, lines: int) -> int:
    """Replace the snapshot by one of `history`; returns its size in bytes. Raises OSError, the old one stays."""
    content = _ENCODER.encode(
        {
            "v": VERSION,
            "seq": history.seq,
            "offset": offset,
            "lines": lines,
            "head": _head_of(folder / layout.JOURNAL),
            "summary": summarise(history),
            "history": msgspec.structs.replace(history, rows=[]),
            "rows": history.rows,
        }
    )
    write_whole(folder / layout.SNAPSHOT, content)
    return len(content)


def read_head(folder: Path) -> Head | None:
    """Return the head of the snapshot, quickly; None where it is missing, torn, or of another journal."""
    try:
        head = _HEAD_DECODER.decode((folder / layout.SNAPSHOT).read_bytes())
    except (OSError, *_UNREADABLE):
        return None
    return head if _fits(folder, head) else None


def lags(folder: Path, head: Head) -> bool:
    """Whether a snapshot is behind its journal and small enough for everybody to fold the rest at once."""
    try:
        size = (folder / layout.SNAPSHOT).stat().st_size
        return size <= SMALL_BYTES and (folder / layout.JOURNAL).stat().st_size > head.offset
    except OSError:
        return False


def fold(folder: Path) -> Fold:
    """Return the session's history as of now: the snapshot, and the journal's tail behind it.

    A snapshot that is missing, torn, empty or of another journal is passed over, with one notice where
    there should have been one, and the journal is folded from its start.
    """
    journal = folder / layout.JOURNAL
    notices: tuple[str, ...] = ()
    snapshot, why = _read(folder)
    if snapshot is not None:
        history = snapshot[1]
        reader = JournalReader(journal, snapshot[0].offset, snapshot[0].lines)
    else:
        history, reader = History(), JournalReader(journal)
        if why:
            notices = (f"{folder / layout.SNAPSHOT}: {why}: the state is rebuilt from {journal.name}",)
    fold_new(history, reader)
    return Fold(history, reader, notices)


def fold_session(folder: Path) -> Fold:
    """Return the fold of a record that holds a session.

    Raises UserError: DAMAGED where it holds none, ENVIRONMENT where it may not be read.
    """
    try:
        made = fold(folder)
    except OSError as error:
        lacks = what_the_machine_lacks(error) or f"{error.filename or folder}: {error.strerror}"
        raise UserError(lacks, ENVIRONMENT) from None
    refuse_without_session(folder, made.history, made.reader)
    return made


def refuse_without_session(folder: Path, history: History, reader: JournalReader) -> None:
    """Raise UserError (DAMAGED) where what was read of a record holds no session."""
    if history.session is not None:
        return
    journal = folder / layout.JOURNAL
    if reader.skipped.newer:
        raise UserError(f"{journal} was written by a newer cake-tui; use that one", DAMAGED)
    raise UserError(
        f"{journal} holds no session: its first line is missing or damaged; start a new one with cake-tui run", DAMAGED
    )


def fold_new(history: History, reader: JournalReader) -> None:
    """Fold what the reader finds; events that the history has already are passed over."""
    for event in reader.read():
        if event.seq > history.seq:
            history.apply(event)


def _read(folder: Path) -> tuple[tuple[Head, History] | None, str]:
    try:
        content = (folder / layout.SNAPSHOT).read_bytes()
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        return None, f"cannot be read ({error.strerror})"
    if not content:
        return None, "is empty"
    try:
        snapshot = _DECODER.decode(content)
        snapshot.history.rows = [_row(raw) for raw in snapshot.rows]
    except _UNREADABLE:
        return None, "is damaged"
    if not _fits(folder, snapshot):
        return None, "does not belong to the journal as it is"
    return (snapshot, snapshot.history), ""


def _row(raw: msgspec.Raw) -> Row:
    row = _ROW_DECODER.decode(raw)
    if not row.in_flight:
        row.settle()
    return row


def _fits(folder: Path, snapshot: Head) -> bool:
    """Tell whether the journal still begins as it did and ends a line where the snapshot stopped reading."""
    journal = folder / layout.JOURNAL
    try:
        if snapshot.v != VERSION or snapshot.offset < 1 or _head_of(journal) != snapshot.head:
            return False
        with journal.open("rb") as file:
            file.seek(snapshot.offset - 1)
            return file.read(1) == b"\n"
    except OSError:
        return False


def _head_of(journal: Path) -> int:
    """Checksum of the journal's first line, which never changes."""
    with journal.open("rb") as file:
        return zlib.crc32(file.readline(1 << 20))
