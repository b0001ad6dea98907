"""Finds the line and the span of every key and value of a TOML text: what tomllib forgets once it has parsed."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

Key = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_VALUE = re.compile(r"[^,\]}#\r\n]+")
_BLANK = " \t\r"


class Place(NamedTuple):
    """Where a key stands (`line` from 1) and its value's span in the text; -1 for a table under a header."""

    line: int
    start: int
    end: int


class Unreadable(Exception):
    """The text stops being TOML; `places` and `open_lines` of the scanner say how far it made sense."""


class Scanner:
    """Walks a TOML text once; for a text that tomllib accepts it finds every key.

    Elements of arrays have a whole number in their key: ``("action", 3, "edits", 0, "do")``. For a key that
    stands twice the first place is kept and the line of the second is in `twice`.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.places: dict[Key, Place] = {}
        self.twice: dict[Key, int] = {}
        self.open_lines: list[int] = []  # lines where arrays, inline tables and strings began that are still open
        self._counts: dict[Key, int] = {}  # arrays of tables: how many so far
        self._line = 1
        self._line_at = 0

    def scan(self) -> None:
        """Fill `places`; raises Unreadable where the text is no TOML."""
        table: Key = ()
        while self._skip(newlines=True):
            line = self._here()
            if self.text.startswith("[", self.at):
                table = self._header(line)
            else:
                self._pair(table, line)

    # -- statements ----------------------------------------------------------------------------------

    def _header(self, line: int) -> Key:
        double = self.text.startswith("[[", self.at)
        self.at += 2 if double else 1
        parts = self._dotted()
        self._expect("]]" if double else "]")
        path: Key = ()
        for part in parts[:-1]:
            path = (*path, part)
            self.places.setdefault(path, Place(line, -1, -1))
            if path in self._counts:
                path = (*path, self._counts[path] - 1)
        path = (*path, parts[-1])
        if double:
            count = self._counts.get(path, 0)
            self._counts[path] = count + 1
            self.places.setdefault(path, Place(line, -1, -1))
            path = (*path, count)
        self._note(path, Place(line, -1, -1))
        return path

    def _pair(self, table: Key, line: int) -> None:
        path = table
        parts = self._dotted()
        for part in parts[:-1]:
            path = (*path, part)
            self.places.setdefault(path, Place(line, -1, -1))
        path = (*path, parts[-1])
        self._expect("=")
        self._skip(newlines=False)
        start = self.at
        self._note(path, Place(line, start, start))
        self._value(path)
        if self.places[path].start == start:
            self.places[path] = Place(line, start, self.at)

    def _note(self, path: Key, place: Place) -> None:
        if path not in self.places:
            self.places[path] = place
        else:
            # An implied table may get its own header once; only tomllib's complaint makes this a mistake.
            self.twice.setdefault(path, place.line)

    # -- values --------------------------------------------------------------------------------------

    def _value(self, path: Key) -> None:
        text, at = self.text, self.at
        if text.startswith(('"""', "'''"), at):
            self._long_string(text[at : at + 3])
        elif text.startswith(('"', "'"), at):
            self._string()
        elif text.startswith("[", at):
            self._array(path)
        elif text.startswith("{", at):
            self._inline(path)
        else:
            found = _VALUE.match(text, at)
            if found is None:
                raise Unreadable
            self.at = at + len(found.group().rstrip(" \t"))

    def _array(self, path: Key) -> None:
        self.open_lines.append(self._here())
        self.at += 1
        count = 0
        while True:
            self._skip(newlines=True)
            if self._take("]"):
                break
            line, start = self._here(), self.at
            self._value((*path, count))
            self.places.setdefault((*path, count), Place(line, start, self.at))
            count += 1
            self._skip(newlines=True)
            if not self._take(","):
                self._expect("]")
                break
        self.open_lines.pop()

    def _inline(self, path: Key) -> None:
        self.open_lines.append(self._here())
        self.at += 1
        while True:
            self._skip(newlines=True)
            if self._take("}"):
                break
            self._pair(path, self._here())
            self._skip(newlines=True)
            if not self._take(","):
                self._expect("}")
                break
        self.open_lines.pop()

    def _string(self) -> str:
        quote, start = self.text[self.at], self.at
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] != "\n":
            if self.text[self.at] == quote:
                self.at += 1
                return self.text[start : self.at]
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        raise Unreadable

    def _long_string(self, quotes: str) -> None:
        self.open_lines.append(self._here())
        self.at += 3
        while True:
            end = self.text.find(quotes[0] * 3, self.at)
            slash = self.text.find("\\", self.at) if quotes[0] == '"' else -1
            if end < 0:
                raise Unreadable
            if 0 <= slash < end:
                self.at = slash + 2
                continue
            self.at = end + 3
            while self.text.startswith(quotes[0], self.at) and self.at < end + 5:  # up to two quotes belong inside
                self.at += 1
            break
        self.open_lines.pop()

    # -- words ---------------------------------------------------------------------------------------

    def _dotted(self) -> list[str]:
        parts = [self._word()]
        while self._take("."):
            parts.append(self._word())
        return parts

    def _word(self) -> str:
        self._skip(newlines=False)
        if self.text.startswith(('"', "'"), self.at):
            quoted = self._string()
            word = _unquote(quoted)
        else:
            found = _BARE.match(self.text, self.at)
            if found is None:
                raise Unreadable
            word = found.group()
            self.at = found.end()
        self._skip(newlines=False)
        return word

    def _skip(self, *, newlines: bool) -> bool:
        """Skip blanks (and comments and line ends); say whether anything is left."""
        text = self.text
        while self.at < len(text):
            char = text[self.at]
            if char in _BLANK or (newlines and char == "\n"):
                self.at += 1
            elif newlines and char == "#":
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            else:
                return True
        return False

    def _take(self, sign: str) -> bool:
        if not self.text.startswith(sign, self.at):
            return False
        self.at += len(sign)
        return True

    def _expect(self, sign: str) -> None:
        self._skip(newlines=False)
        if not self._take(sign):
            raise Unreadable

    def _here(self) -> int:
        """The line of the current place; counted onwards from the last asked one."""
        self._line += self.text.count("\n", self._line_at, self.at)
        self._line_at = self.at
        return self._line


def _unquote(quoted: str) -> str:
    """Return the text of a one-line string; an escape that JSON lacks keeps its raw form."""
    if quoted[0] == "'":
        return quoted[1:-1]
    try:
        found = json.loads(re.sub(r"\\U([0-9A-Fa-f]{8})", lambda m: chr(int(m[1], 16)), quoted), strict=False)
    except ValueError:
        return quoted[1:-1]
    return str(found)
