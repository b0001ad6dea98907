"""Say in one line where a session stands, quickly; without a name, one line for each session."""

from __future__ import annotations

import argparse

from cake_tui.cli import Command
from cake_tui.cli._ending import complain
from cake_tui.cli._output import print_json, print_line
from cake_tui.cli._session import add_sessions_argument
from cake_tui.errors import OK, UserError
from cake_tui.store import name as names
from cake_tui.store.progress import line_about, summary_of, trouble_with


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the session."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="the session (all of them)")
    add_sessions_argument(parser)
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    """Read the snapshots' heads."""
    if args.name is not None:
        path = names.find(args.name, args.sessions)
        if args.json:
            print_json(summary_of(path))
        else:
            print_line(line_about(path))
        return OK
    folder = names.folder_of(args.sessions)
    found = [folder / name for name in names.all_names(args.sessions)]
    summaries = []
    for path in found:
        try:
            if args.json:
                summaries.append(summary_of(path))
            else:
                print_line(line_about(path))
        except UserError as error:  # one session's trouble hides no other
            complain(trouble_with(path, error))
    if args.json:
        print_json(summaries)
    elif not found:
        print(f"no sessions in {folder}")
    return OK


PLUGIN: Command = Command("cake-tui status first", add_arguments, run)
