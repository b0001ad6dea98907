"""The terminal viewer: panes over the fold of a session's journal; live, attached late and replayed are one path.

Importing this package imports no Textual; `view` and `step_through` do, where there is a terminal to draw on.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from cake_tui.config import environment

__all__ = ["Look", "has_screen", "step_through", "view"]


@dataclass(frozen=True)
class Look:
    """How the screen is drawn; None lets the locale choose `ascii`, and the terminal (``COLORFGBG``) `light`."""

    slow_link: bool = False
    ascii: bool | None = None
    light: bool | None = None
    mouse: bool = True


USUAL = Look()


def view(session_dir: Path, *, read_only: bool = False, look: Look = USUAL) -> int:
    """Show a session until the person leaves; returns the exit code, 128+n where signal n ended it.

    Without a terminal (a pipe, ``TERM=dumb``) the state and the last lines are printed. An unforeseen error
    travels on after the terminal was given back.
    """
    from cake_tui.tui.entry import show

    return show(session_dir, replayed=False, read_only=read_only, look=look)


def step_through(session_dir: Path, *, look: Look = USUAL) -> int:
    """Show a recorded session at its end, to be stepped through; without a terminal all its lines are printed."""
    from cake_tui.tui.entry import show

    return show(session_dir, replayed=True, read_only=True, look=look)


def has_screen() -> bool:
    """A terminal on all three standard streams that understands escapes. Textual draws on stderr."""
    streams = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
    try:
        terminals = all(stream is not None and os.isatty(stream.fileno()) for stream in streams)
    except (OSError, ValueError):
        return False
    return terminals and (environment("TERM") or "dumb") not in ("dumb", "unknown")
