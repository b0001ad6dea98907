"""Say in one line where a session stands, quickly; without a name, one line for each session."""

from __future__ import annotations

import argparse

from cake_tui.cli import Command
from cake_tui.cli._output import print_json
from cake_tui.cli._session import add_sessions_argument
from cake_tui.errors import OK
from cake_tui.store import name as names
from cake_tui.store.progress import line_about, summary_of


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
            print(line_about(path))
        return OK
    folder = names.folder_of(args.sessions)
    found = [folder / name for name in names.all_names(args.sessions)]
    if args.json:
        print_json([summary_of(path) for path in found])
        return OK
    for path in found:
        print(line_about(path))
    if not found:
        print(f"no sessions in {folder}")
    return OK


PLUGIN: Command = Command("cake-tui status first", add_arguments, run)
