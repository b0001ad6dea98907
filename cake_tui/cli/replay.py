"""Step through a recorded session in the terminal: the same viewer, with a cursor over the record.

`[` and `]` go one candidate back and forward, space plays, `@` goes to a candidate or a time.
Without a terminal all its lines are printed, with --json its events.
"""

from __future__ import annotations

import argparse

from cake_tui.cli import Command
from cake_tui.cli._look import add_look_arguments, look_of
from cake_tui.cli._output import print_json_line
from cake_tui.cli._session import add_session_arguments, folder_of
from cake_tui.errors import OK
from cake_tui.store.progress import Progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the session and how to look at it."""
    add_session_arguments(parser)
    add_look_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the events themselves, one a line")


def run(args: argparse.Namespace) -> int:
    """Open the viewer on the record, or print it."""
    if args.json:
        progress = Progress(folder_of(args))
        for event in progress.events():
            print_json_line(event)
        progress.refuse_without_session()
        return OK
    from cake_tui.tui import step_through

    return step_through(folder_of(args).absolute(), look=look_of(args))


PLUGIN: Command = Command("cake-tui replay first", add_arguments, run)
