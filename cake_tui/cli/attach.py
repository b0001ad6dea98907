"""Watch a session, running or not, in the terminal; any number of people may. Leaving never stops it.

Without a terminal (a pipe, TERM=dumb) it prints where the session stands and its last lines.
"""

from __future__ import annotations

import argparse

from cake_tui.cli import Command, tail
from cake_tui.cli._session import add_session_arguments, at_a_terminal, folder_of
from cake_tui.cli._watch import view
from cake_tui.cli.status import line_about
from cake_tui.errors import OK


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the session and how to look at it."""
    add_session_arguments(parser)
    parser.add_argument("--read-only", action="store_true", help="look, touch nothing")
    parser.add_argument("--slow-link", action="store_true", help="at most 1 KB/s")


def run(args: argparse.Namespace) -> int:
    """Open the viewer, or print plain lines."""
    path = folder_of(args).absolute()
    if at_a_terminal():
        return view(path, read_only=args.read_only, slow_link=args.slow_link)
    print(line_about(path))
    for line in tail.last_lines(path, 10):
        print(line)
    return OK


PLUGIN: Command = Command("cake-tui attach first", add_arguments, run)
