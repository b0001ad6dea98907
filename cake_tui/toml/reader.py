"""Reads tables key by key against what is allowed, noting every mistake instead of stopping at the first."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from cake_tui.errors import UserError, did_you_mean, nearest, printable
from cake_tui.toml.document import Document
from cake_tui.toml.hints import spelled
from cake_tui.toml.scanner import Key

_MOST_SHOWN = 20


class Mistakes:
    """What is wrong in one document, sorted by line when it is raised."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._found: list[tuple[int, str]] = []

    def add(self, path: Key, message: str) -> None:
        """Note one mistake at a key; a name with control characters in it cannot break the line."""
        self._found.append((self.document.line(path), f"{self.document.at(path)}: {printable(message)}"))

    def __len__(self) -> int:
        return len(self._found)

    def raise_if_any(self) -> None:
        """Raise one UserError with a line a mistake, in the file's order."""
        if not self._found:
            return
        lines = list(dict.fromkeys(text for _, text in sorted(self._found, key=lambda found: found[0])))
        if len(lines) > _MOST_SHOWN:
            lines = [*lines[:_MOST_SHOWN], f"{self.document.label}: and {len(lines) - _MOST_SHOWN} more mistakes"]
        raise UserError("\n".join(lines))


class Table:
    """One table of a document. Every getter returns a value of its type, or None after noting the mistake.

    `about` is put before each key in messages (``action "apply_tiling"``); the keys asked for are the
    allowed ones, and `close` notes all others.
    """

    def __init__(self, mistakes: Mistakes, path: Key, value: dict[str, Any], about: str = "", outer: int = 0) -> None:
        self.mistakes = mistakes
        self.path = path
        self.value = value
        self.about = about
        self._outer = outer  # how many parts of the path `about` stands for
        self._asked: list[str] = []

    # -- getters -------------------------------------------------------------------------------------

    def has(self, key: str) -> bool:
        """Whether the key is there; counts as asked for."""
        self._ask(key)
        return key in self.value

    def text(self, key: str, default: str | None = None, *, required: bool = False) -> str | None:
        """A string that is not empty."""
        found = self._get(key, required)
        if found is None:
            return default
        if not isinstance(found, str):
            self.wrong(key, found, "a text in quotes")
            return default
        if not found.strip():
            self.wrong(key, found, "a text that is not empty")
            return default
        return found

    def choice(
        self, key: str, allowed: Sequence[str], default: str | None = None, *, required: bool = False
    ) -> str | None:
        """One of a few words."""
        found = self._get(key, required, ", ".join(allowed))
        if found is None:
            return default
        if not isinstance(found, str) or found not in allowed:
            self.wrong(key, found, ", ".join(allowed), allowed)
            return default
        return found

    def flag(self, key: str, default: bool) -> bool:
        """``true`` or ``false``."""
        found = self._get(key, False)
        if found is None:
            return default
        if not isinstance(found, bool):
            self.wrong(key, found, "true, false")
            return default
        return found

    def number(self, key: str, default: float, low: float, high: float) -> float:
        """A number from `low` to `high`."""
        found = self._get(key, False)
        if found is None:
            return default
        if isinstance(found, bool) or not isinstance(found, int | float) or not low <= found <= high:
            self.wrong(key, found, f"a number from {low:g} to {high:g}")
            return default
        return float(found)

    def texts(self, key: str, *, required: bool = False, allowed: Sequence[str] | None = None) -> tuple[str, ...]:
        """An array of strings."""
        found = self._get(key, required)
        if found is None:
            return ()
        words = "an array of texts" + (f" out of {', '.join(allowed)}" if allowed else "")
        if not isinstance(found, list):
            self.wrong(key, found, words)
            return ()
        good: list[str] = []
        for index, item in enumerate(found):
            if not isinstance(item, str) or not item.strip() or (allowed is not None and item not in allowed):
                self.wrong(key, item, ", ".join(allowed) if allowed else "a text in quotes", allowed or (), index)
            else:
                good.append(item)
        return tuple(good)

    def values(self, key: str, *, required: bool = False, most: int = 64) -> tuple[int | bool | str, ...]:
        """An array of whole numbers, of true and false, or of texts, none twice."""
        found = self._get(key, required)
        if found is None:
            return ()
        if not isinstance(found, list) or not found:
            self.wrong(key, found, "an array of values, at least one: [2, 4]")
            return ()
        if len(found) > most:
            self.mistake((key,), f"{len(found)} values; at most {most}")
            return ()
        good: list[int | bool | str] = []
        for index, item in enumerate(found):
            if not isinstance(item, int | bool | str) or (isinstance(item, int) and abs(item) >= 2**31):
                self.wrong(key, item, "whole numbers, true, false or texts", (), index)
            elif type(item) is not type(found[0]):
                self.mistake((key, index), f"found {shown(item)} among values of another type; all of one type")
            elif item in good:
                self.mistake((key, index), f"{shown(item)} stands twice")
            else:
                good.append(item)
        return tuple(good)

    def table(self, key: str, *, required: bool = False) -> Table | None:
        """A table within this one."""
        found = self._get(key, required)
        if found is None:
            return None
        if not isinstance(found, dict):
            self.wrong(key, found, "a table")
            return None
        return self.inner((key,), found)

    def tables(self, key: str, *, required: bool = False, form: str = "an array of tables") -> tuple[Table, ...]:
        """An array of tables."""
        found = self._get(key, required)
        if found is None:
            return ()
        if not isinstance(found, list):
            self.wrong(key, found, form)
            return ()
        good = []
        for index, item in enumerate(found):
            if isinstance(item, dict):
                good.append(self.inner((key, index), item))
            else:
                self.wrong(key, item, "a table", (), index)
        return tuple(good)

    def raw(self, key: str, *, required: bool = False) -> Any:
        """The value as it stands, None where there is none."""
        return self._get(key, required)

    def inner(self, tail: Key, value: dict[str, Any], about: str | None = None) -> Table:
        """A reader for a table below this one; with `about` its keys are shown from there on."""
        path = (*self.path, *tail)
        if about is None:
            return Table(self.mistakes, path, value, self.about, self._outer)
        return Table(self.mistakes, path, value, about, len(path))

    # -- mistakes ------------------------------------------------------------------------------------

    def wrong(self, key: str, found: Any, allowed: str, known: Iterable[str] = (), index: int | None = None) -> None:
        """Note a value that is not allowed."""
        tail: Key = (key,) if index is None else (key, index)
        near = did_you_mean(found, known) if isinstance(found, str) else ""
        self.mistake(tail, f"found {shown(found)}, allowed: {allowed}{near}")

    def mistake(self, tail: Key, message: str) -> None:
        """Note any mistake at a key below this table, the table itself for an empty tail."""
        path = (*self.path, *tail)
        key = spelled(path[self._outer :])
        words = [word for word in (self.about, key) if word]
        self.mistakes.add(path, f"{': '.join([*words, message])}")

    def close(self, elsewhere: dict[str, str] | None = None) -> None:
        """Note every key that nobody asked for; `elsewhere` says where known keys of other tables belong."""
        elsewhere = elsewhere or {}
        for key in self.value:
            if key in self._asked:
                continue
            allowed = f"unknown key; allowed: {', '.join(self._asked)}"
            if key in elsewhere:
                self.mistake((key,), f"{allowed}; it belongs in {elsewhere[key]}")
                continue
            near = nearest(key, self._asked)
            other = nearest(key, elsewhere)
            if near is None and other is not None:
                self.mistake((key,), f'{allowed} (did you mean "{other}"? it belongs in {elsewhere[other]})')
            else:
                self.mistake((key,), f"{allowed}{did_you_mean(key, self._asked)}")

    def _ask(self, key: str) -> None:
        if key not in self._asked:
            self._asked.append(key)

    def _get(self, key: str, required: bool, allowed: str = "") -> Any:
        self._ask(key)
        if key not in self.value:
            if required:
                self.mistake((), f'the key "{key}" is missing' + (f"; allowed: {allowed}" if allowed else ""))
            return None
        return self.value[key]


def shown(value: Any) -> str:
    """Write a value the way the file would, on one line, cut where it is long."""
    text = _spell(value, 4)
    return text if len(text) <= 60 else text[:58] + " …"


def _spell(value: Any, depth: int) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value[:80], ensure_ascii=False).replace("\x7f", "\\u007f")
        case float() if not math.isfinite(value):
            return str(value)
        case list() if depth:
            return f"[{', '.join(_spell(item, depth - 1) for item in value[:20])}]"
        case dict() if depth:
            pairs = list(value.items())[:20]
            return f"{{ {', '.join(f'{spelled((key,))} = {_spell(item, depth - 1)}' for key, item in pairs)} }}"
        case list() | dict():
            return "…"
        case int() if abs(value) > 10**30:
            return "a number of many digits"
        case _:
            return str(value)
