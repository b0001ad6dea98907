"""Changes actions.toml as a careful person would: comments, order and line ends stay, the file is swapped whole."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cake_tui import registry
from cake_tui.errors import ENVIRONMENT, UserError, did_you_mean
from cake_tui.menu.source import read_actions
from cake_tui.model.device import TARGETS
from cake_tui.model.schedule import KnobValue
from cake_tui.toml import Added, Document, Key, parse_document, read_text, shown, shown_path


def set_enabled(path: Path, name: str, enabled: bool) -> Path:
    """Enable or disable an action in the file and return the file that was written.

    The packaged file is never written: it is copied into the working folder first. Raises UserError, and
    changes nothing then.
    """
    document = _document(path)
    action = _action(document, name)
    text = _with_key(document, action, "enabled", "true" if enabled else "false")
    return _write(path, document, text)


def set_values(path: Path, name: str, target: str, parameter: str, values: Sequence[KnobValue]) -> Path:
    """Give a parameter of an action other values on one target; raises UserError, and changes nothing then."""
    document = _document(path)
    action = _action(document, name)
    if not values:
        raise UserError(f"{name}: {parameter}: no values; allowed: at least one")
    written = shown(list(values)) if len(values) <= 12 else f"[{', '.join(shown(value) for value in values)}]"
    for key in ((*action, "parameters", target, parameter, "values"), (*action, "parameters", target, parameter)):
        place = document.places.get(key)
        if place is not None and place.start >= 0:
            return _write(path, document, document.text[: place.start] + written + document.text[place.end :])
    inside = (*action, "parameters", target)
    names = [str(key[-1]) for key in document.places if key[:-1] == inside]
    raise UserError(
        f"{document.at(action)}: {name}: no parameter {shown(parameter)} on {target}{did_you_mean(parameter, names)}; "
        f"there: {', '.join(names) or 'none'}"
    )


def add_action(path: Path, text: str, label: str) -> Path:
    """Append ``[[action]]`` text to the file; raises UserError with the mistakes, and changes nothing then.

    A mistake names its line in the file that the text is from, which is called `label`.
    """
    parse_document(text, label)
    document = _document(path)
    end = "\r\n" if "\r\n" in document.text else "\n"
    lines = [line.removesuffix("\r") for line in text.strip("\r\n").split("\n")]
    before = document.text.rstrip("\r\n")
    first = before.count("\n") + 3  # a blank line stands between
    above = first - 1 - text[: len(text) - len(text.lstrip("\r\n"))].count("\n")
    if not any(re.match(r"\s*\[\[\s*action\s*\]\]", line) for line in lines):
        lines.insert(0, "[[action]]")
        above += 1
    return _write(path, document, before + end * 2 + end.join(lines) + end, Added(label, first, above))


# --- the text -----------------------------------------------------------------------------------------


def _document(path: Path) -> Document:
    return parse_document(read_text(path), shown_path(path))


def _action(document: Document, name: str) -> Key:
    """Return the key of an action's table."""
    tables = document.value.get("action")
    found = tables if isinstance(tables, list) else []
    names = [table.get("name") if isinstance(table, dict) else None for table in found]
    if name not in names:
        known = [known for known in names if isinstance(known, str)]
        raise UserError(
            f"{document.label}: no action {shown(name)}{did_you_mean(name, known)}; known: {', '.join(known)}"
        )
    return ("action", names.index(name))


def _with_key(document: Document, table: Key, key: str, value: str) -> str:
    """Return the text with one key of a table replaced, or put on a line of its own behind the table's name."""
    place = document.places.get((*table, key))
    if place is not None:
        return document.text[: place.start] + value + document.text[place.end :]
    end = document.text.find("\n", document.places[(*table, "name")].end)
    line = f"{key} = {value}"
    if end < 0:
        return f"{document.text}\n{line}\n"
    newline = "\r\n" if document.text[end - 1 : end] == "\r" else "\n"
    return document.text[: end + 1] + line + newline + document.text[end + 1 :]


def _write(path: Path, document: Document, text: str, added: Added | None = None) -> Path:
    """Read the new text as actions on every target, then swap the file; links are followed, the mode stays."""
    changed = replace(parse_document(text, document.label), added=added)
    for target in TARGETS:
        read_actions(changed, target)
    final = _own(path).resolve()
    fresh = final.with_name(f".{final.name}.{os.getpid()}.new")
    try:
        with fresh.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if final.exists():
            shutil.copymode(final, fresh)
        fresh.replace(final)
    except OSError as error:
        raise UserError(f"{document.label}: cannot be written: {(error.strerror or '').lower()}", ENVIRONMENT) from None
    finally:
        fresh.unlink(missing_ok=True)
    return _own(path)


def _own(path: Path) -> Path:
    """Return the file to write: one of the working folder instead of the packaged one."""
    here = Path("actions.toml")
    return here if path.resolve() == registry.packaged("actions.toml").resolve() else path
