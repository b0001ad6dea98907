"""Open a session that an earlier engine left: mend its record, fold it, and say what changed since."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from cake_tui.config import Settings
from cake_tui.engine.desk import changed_settings
from cake_tui.errors import DAMAGED, UserError, did_you_mean
from cake_tui.model import layout
from cake_tui.model.history import History
from cake_tui.store import snapshot
from cake_tui.store.journal import set_torn_end_aside
from cake_tui.store.session import read_document


class Opening(msgspec.Struct, frozen=True):
    """A session as it was left: its fold, how far the snapshot's reader came, what people should hear."""

    history: History
    lines: int
    notices: tuple[str, ...]
    settings: dict[str, Any]
    changes: tuple[tuple[str, str, str], ...]


def reopen(path: Path, values: Mapping[str, Any]) -> Opening:
    """Mend and fold a session whose lock is held; `values` are settings given on the command line.

    Raises UserError: DAMAGED where nothing can go on from the record, USAGE for a setting.
    """
    torn = set_torn_end_aside(path / layout.JOURNAL)
    made = snapshot.fold_session(path)
    history, skipped = made.history, made.reader.skipped
    if skipped.newer:
        raise UserError(f"{path / layout.JOURNAL} was written by a newer cake-tui; go on with that one", DAMAGED)
    settings, changes = changed_settings(history.settings, {**_edited_settings(path, history), **values})
    # A snapshot that knew the torn line cannot fit any more: one mishap is told once.
    notices = list(made.notices) if torn is None else [f"{torn.text}; {_what_goes_on(history)}"]
    if skipped.lines:
        notices.append(
            f"{path / layout.JOURNAL}: {skipped.lines} damaged lines passed over; the first: line {skipped.first_line}"
        )
    return Opening(history, made.reader.line, tuple(notices), settings, changes)


def _what_goes_on(history: History) -> str:
    rows = sorted(history.in_flight(), key=lambda row: row.number)
    if not rows:
        return "no candidate has to run again"
    numbers = ", ".join(str(row.number) for row in rows)
    word = "candidates" if len(rows) > 1 else "candidate"
    return f"{word} {numbers} run again from the step after the last one on record"


def _edited_settings(path: Path, history: History) -> dict[str, Any]:
    """Return the settings in ``session.toml`` that differ from the journal's: a person edited them."""
    document = read_document(path)
    table = document.value.get("settings", {})
    if not isinstance(table, dict):
        raise UserError(f"{document.label}: settings: found {type(table).__name__}, allowed: a table")
    known = Settings().flat()
    for name, value in table.items():
        place = document.at(("settings", name))
        if name not in known:
            if name in history.settings:
                continue  # of another version: nobody wrote it by hand
            raise UserError(f'{place}: settings.{name}: no setting "{name}"{did_you_mean(name, known)}')
        try:
            Settings().changed(**{name: value})
        except UserError as error:
            raise UserError(f"{place}: {error}") from None
    return {name: value for name, value in table.items() if value != history.settings.get(name)}
