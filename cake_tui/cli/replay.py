"""Step through a recorded session in the terminal: the same viewer, with a cursor over the record.

`[` and `]` go one candidate back and forward, space plays, `@` goes to a candidate or a time.
Without a terminal all its lines are printed.
"""

from __future__ import annotations

import argparse

from cake_tui.cli import Command
from cake_tui.cli._look import add_look_arguments, look_of
from cake_tui.cli._session import add_session_arguments, folder_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the session and how to look at it."""
    add_session_arguments(parser)
    add_look_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Open the viewer on the record."""
    from cake_tui.tui import step_through

    return step_through(folder_of(args).absolute(), look=look_of(args))


PLUGIN: Command = Command("cake-tui replay first", add_arguments, run)
