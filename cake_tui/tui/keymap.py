"""Keys by binding id as the person has them: defaults, laid over by ``keys.toml``; a bad entry is one line.

The file holds lines such as ``run.pause = "ctrl+e"`` or ``board.order = ["o", "f5"]``; the help lists the ids.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textual.keys import _character_to_key

from cake_tui.errors import UserError, did_you_mean
from cake_tui.toml import Document, read_document
from cake_tui.toml import shown as spelled

FILE = "keys.toml"
LEAVE = ("ctrl+c", "ctrl+q")  # they leave, whatever a file says
ALLOWED = "one character, ctrl+letter (no h i j m), tab, shift+tab, enter, space, escape, arrows, home, f1 to f12"
_NAMED = re.compile(
    r"ctrl\+[a-gk-lno-z]|(shift\+)?(tab|up|down|left|right|home|end|pageup|pagedown)"
    r"|f([1-9]|1[0-2])|enter|space|escape|backspace|delete|insert"
)
_SHOWN = {_character_to_key(char): char for char in string.punctuation}
_SHOWN |= {"escape": "esc", "pageup": "pgup", "pagedown": "pgdn"}


@dataclass(frozen=True)
class Keymap:
    """`changed` holds ids whose keys differ from the default; `mistakes` a line for each bad entry."""

    changed: Mapping[str, str] = field(default_factory=dict)
    mistakes: tuple[str, ...] = ()

    def keys(self, id: str, default: str) -> str:  # noqa: A002 Textual's name
        """The keys of a binding, in Textual's words, joined by commas."""
        return self.changed.get(id, default)


def shown(keys: str) -> str:
    """Keys as people write them, blanks between: ``? f1`` of ``question_mark,f1``."""
    return " ".join(_SHOWN.get(key.strip(), key.strip()) for key in keys.split(","))


def read_keymap(path: Path, defaults: Mapping[str, Mapping[str, str]]) -> Keymap:
    """Read the file; bad entries are left out and told, the others hold.

    `defaults` gives for each group of bindings the keys by id; the groups ``""`` and ``"pane"`` hold
    everywhere, so that no other group may take their keys.
    """
    if not path.exists():
        return Keymap()
    try:
        document = read_document(path)
    except UserError as error:
        return Keymap({}, tuple(str(error).splitlines()))
    mistakes: list[str] = []
    known = {name: keys for group in defaults.values() for name, keys in group.items()}
    changed: dict[str, str] = {}
    for key_path, value in _entries(document.value):
        name = ".".join(key_path)
        told = _mistake(name, value, known)
        if told:
            mistakes.append(f"{_at(document, key_path)}: {told}")
        else:
            changed[name] = ",".join(map(_name, _listed(value)))
    for key_path, _ in _entries(document.value):
        name = ".".join(key_path)
        taken = _taken(name, changed, defaults) if name in changed else ""
        if taken:
            mistakes.append(f"{_at(document, key_path)}: {name} = {shown(changed.pop(name))}: {taken}")
    return Keymap(changed, tuple(mistakes))


def _at(document: Document, path: tuple[str, ...]) -> str:
    return f"{FILE}:{document.line(path)}"


def _entries(value: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(path, value) of every entry; ``run.pause``, ``"run.pause"`` and ``[run]`` are the same."""
    for name, inner in value.items():
        if isinstance(inner, dict):
            yield from _entries(inner, (*path, name))
        else:
            yield (*path, name), inner


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _mistake(name: str, value: Any, known: Mapping[str, str]) -> str:
    """What is wrong with one entry by itself, else an empty text."""
    if name not in known:
        return f"{spelled(name)}: no such binding{did_you_mean(name, known)}; the help lists them: ?"
    found = _listed(value)
    if not found:
        return f"{name} = []: a binding needs a key; allowed: {ALLOWED}"
    for key in found:
        if not isinstance(key, str) or not _name(key):
            return f"{name}: no such key {spelled(key)}; allowed: {ALLOWED}"
        if _name(key) in LEAVE:
            return f"{name}: {key} always leaves the viewer; allowed: {ALLOWED}"
    return ""


def _name(key: str) -> str:
    """Textual's name of a key as people write it; empty for what is none."""
    if len(key) == 1:
        return "space" if key == " " else _character_to_key(key) if key.isascii() and key.isprintable() else ""
    key = {"esc": "escape", "pgup": "pageup", "pgdn": "pagedown"}.get(key.lower(), key.lower())
    return key if _NAMED.fullmatch(key) else ""


def _taken(name: str, changed: Mapping[str, str], defaults: Mapping[str, Mapping[str, str]]) -> str:
    """Which other binding holds one of a binding's keys where both could act, else an empty text."""
    own = next(group for group, members in defaults.items() if name in members)
    wanted = set(changed[name].split(","))
    for group, members in defaults.items():
        if group != own and not {group, own} & {"", "pane"}:
            continue
        for other, keys in members.items():
            both = wanted & set(changed.get(other, keys).split(","))
            if other != name and both:
                return f"{shown(both.pop())} is {other}; give that another key too, or choose a free one"
    return ""
