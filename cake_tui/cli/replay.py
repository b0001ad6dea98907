"""Step through a recorded session in the terminal: the same viewer, with a cursor over the record.

`[` and `]` go one candidate back and forward. Without a terminal all its lines are printed.
"""

from __future__ import annotations

import argparse

from cake_tui.cli import Command
from cake_tui.cli._session import add_session_arguments, folder_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the session and how to look at it."""
    add_session_arguments(parser)
    parser.add_argument("--slow-link", action="store_true", help="at most 1 KB/s")


def run(args: argparse.Namespace) -> int:
    """Open the viewer on the record."""
    from cake_tui.tui import replay

    return replay(folder_of(args).absolute(), slow_link=args.slow_link)


PLUGIN: Command = Command("cake-tui replay first", add_arguments, run)
