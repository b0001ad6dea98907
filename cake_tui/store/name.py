"""Names of sessions: what a folder may be called, and which one a person means."""

from __future__ import annotations

import os
import re
from pathlib import Path

from cake_tui.config import sessions_dir
from cake_tui.errors import UserError, did_you_mean
from cake_tui.model import layout

LONGEST = 64
_ALLOWED = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\Z")


def checked(name: str) -> str:
    """Return the name; raises UserError where it cannot be a session's."""
    if len(name) > LONGEST:
        raise UserError(f"session name: found {len(name)} characters, allowed: at most {LONGEST}")
    if not _ALLOWED.match(name):
        raise UserError(
            f"session name: found {name!r}, allowed: letters a-z A-Z, digits, - and _, beginning with a letter or digit"
        )
    return name


def is_one(text: str) -> bool:
    """Tell whether a text can be a session's name."""
    return len(text) <= LONGEST and _ALLOWED.match(text) is not None


def folder_of(sessions: Path | None = None) -> Path:
    """Return the folder of all sessions: the one given, else the configured one."""
    return sessions if sessions is not None else sessions_dir()


def all_names(sessions: Path | None = None) -> tuple[str, ...]:
    """List the sessions of a folder, sorted."""
    folder = folder_of(sessions)
    try:
        found = [path.name for path in folder.iterdir() if not path.name.startswith(".") and _may_be_session(path)]
    except OSError:
        return ()
    return tuple(sorted(found))


def _may_be_session(path: Path) -> bool:
    try:
        return (path / layout.JOURNAL).is_file()
    except OSError:  # another user's: it is named, and whoever asks for it is told
        return path.is_dir()


def find(name: str, sessions: Path | None = None) -> Path:
    """Return an existing session's folder; raises UserError with the nearest name where there is none."""
    folder = folder_of(sessions)
    path = folder / checked(name)
    if not (path / layout.JOURNAL).is_file():
        known = all_names(sessions)
        there = f"there: {', '.join(known[:10])}" if known else "there is none"
        raise UserError(f'no session "{name}" in {folder}{did_you_mean(name, known)}; {there}')
    return path


def free_name(kernel: str, sessions: Path | None = None) -> str:
    """Return the first of ``<kernel>-1``, ``<kernel>-2``, ... that no session has."""
    folder = folder_of(sessions)
    stem = re.sub(r"[^A-Za-z0-9_-]", "-", kernel).lstrip("-_")[: LONGEST - 8] or "session"
    number = 1
    while os.path.lexists(folder / f"{stem}-{number}"):
        number += 1
    return f"{stem}-{number}"
