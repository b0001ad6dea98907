"""A TOML file with the line of every key, read as UTF-8 whatever the locale; every mistake is one clear line."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cake_tui.errors import UserError
from cake_tui.toml.hints import hint
from cake_tui.toml.scanner import Key, Place, Scanner, Unreadable

LARGEST_BYTES = 1_000_000
_AT = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")


@dataclass(frozen=True)
class Added:
    """The text of another file at a document's end: it begins at line `first`, `before` lines stand above its own."""

    label: str
    first: int
    before: int


@dataclass(frozen=True)
class Document:
    """A parsed file: `label` is its name in messages, `text` as it stands in the file (line ends kept)."""

    label: str
    text: str
    value: dict[str, Any]
    places: dict[Key, Place]
    added: Added | None = None

    def line(self, path: Key) -> int:
        """Return the line of a key, or of the nearest table above it where the key is not there."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places[path].line if path else 1

    def at(self, path: Key) -> str:
        """Return ``actions.toml:12`` for a key."""
        label, line = self.origin(self.line(path))
        return f"{label}:{line}"

    def origin(self, line: int) -> tuple[str, int]:
        """Return the file that a line was written in, and its number there."""
        if self.added is None or line < self.added.first:
            return self.label, line
        return self.added.label, max(1, line - self.added.before)


def read_document(path: Path) -> Document:
    """Read and parse a TOML file; raises UserError in one line for anything that is wrong with it."""
    label = shown_path(path)
    return parse_document(read_text(path), label)


def parse_document(text: str, label: str) -> Document:
    """Parse TOML text; raises UserError with the line, what stands there and a hint."""
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(_syntax(text, label, str(error))) from None
    except RecursionError:
        raise UserError(f"{label}: nested too deeply to be read") from None
    except ValueError as error:
        # Numbers with thousands of digits; the interpreter refuses them before tomllib can say where.
        raise UserError(f"{label}: not valid TOML: {str(error).split(';')[0]}") from None
    scanner = Scanner(text)
    with suppress(Unreadable, RecursionError):  # newer grammar than the scanner's: lines of what it did read
        scanner.scan()
    return Document(label, text, value, scanner.places)


def read_text(path: Path, largest_bytes: int = LARGEST_BYTES) -> str:
    """Read a text file as UTF-8 (a byte order mark is dropped); raises UserError naming file and reason."""
    label = shown_path(path)
    try:
        # A named pipe would block the open for ever, a device never ends.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UserError(f"{label}: cannot be read: {(error.strerror or str(error)).lower()}") from None
    except ValueError:
        raise UserError(f"{label}: not a path: it has a NUL character") from None
    try:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise UserError(f"{label}: a folder stands where a file is needed")
        if not stat.S_ISREG(kind):
            raise UserError(f"{label}: not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(largest_bytes + 1)
    except OSError as error:
        raise UserError(f"{label}: cannot be read: {(error.strerror or str(error)).lower()}") from None
    finally:
        os.close(descriptor)
    if len(data) > largest_bytes:
        raise UserError(f"{label}: larger than {largest_bytes} bytes; that is no file of this kind")
    return _decoded(data, label)


def _decoded(data: bytes, label: str) -> str:
    data = data.removeprefix(b"\xef\xbb\xbf")
    line = 1 + data.count(b"\n", 0, max(0, data.find(b"\0")))
    if b"\0" in data:
        raise UserError(f"{label}:{line}: a NUL byte; this is no text (or UTF-16: save it as UTF-8)")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = 1 + data.count(b"\n", 0, error.start)
        raise UserError(f"{label}:{line}: not UTF-8 (byte 0x{data[error.start]:02x}); save the file as UTF-8") from None


def shown_path(path: Path) -> str:
    """Return the path as messages show it: relative to the working folder where it is inside, else whole."""
    text = os.fspath(path)
    try:
        whole = os.path.abspath(text)  # noqa: PTH100 no look at the disk: links stay as the user wrote them
        here = os.getcwd()  # noqa: PTH109 may be gone; then the path stays as it is
    except (OSError, ValueError):
        return text
    inside = whole.removeprefix(here.rstrip("/") + "/")
    return inside if whole.startswith(here.rstrip("/") + "/") else text


def _syntax(text: str, label: str, message: str) -> str:
    where = _AT.search(message)
    what = _AT.sub("", message)
    last = max(1, text.count("\n") + (not text.endswith("\n")))
    at = int(where[1]) if where and where[1] else last
    line, words = hint(text, min(at, last), what)
    stands = (text.split("\n")[line - 1] if text else "").strip()
    quoted = f"{stands[:80]}{' …' if len(stands) > 80 else ''}"
    return f"{label}:{line}: cannot read `{quoted}`: {words}"
