"""Watch a session, running or not, in the terminal; any number of people may. Leaving never stops it.

Without a terminal (a pipe, TERM=dumb) it prints where the session stands and its last lines.
"""

from __future__ import annotations

import argparse

from cake_tui.cli import Command
from cake_tui.cli._look import add_look_arguments, look_of
from cake_tui.cli._session import add_session_arguments, folder_of
from cake_tui.cli._watch import view


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the session and how to look at it."""
    add_session_arguments(parser)
    parser.add_argument("--read-only", action="store_true", help="look, touch nothing")
    add_look_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Open the viewer, which prints plain lines where there is no terminal."""
    return view(folder_of(args).absolute(), read_only=args.read_only, look=look_of(args))


PLUGIN: Command = Command("cake-tui attach first", add_arguments, run)
