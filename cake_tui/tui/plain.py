"""The viewer without a screen: plain lines for pipes, logs and dumb terminals; no escapes, no Textual."""

from __future__ import annotations

from pathlib import Path

from cake_tui.errors import OK
from cake_tui.store.progress import Progress, last_lines, line_about

LAST = 10


def glance(session: Path) -> int:
    """Print where the session stands and its last lines; returns at once (``tail -f`` follows)."""
    _say(line_about(session))
    for line in last_lines(session, LAST):
        _say(line)
    return OK


def recount(session: Path) -> int:
    """Print all lines of a session and where it stands."""
    for line in Progress(session).lines():
        _say(line)
    _say(line_about(session))
    return OK


def _say(text: str) -> None:
    print(text)  # noqa: T201 what this file is for
