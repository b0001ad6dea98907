"""Leave a note in a running session's record; the history shows it where it was made."""

from __future__ import annotations

import argparse

from cake_tui.cli import Command
from cake_tui.cli._session import add_session_arguments, ask


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the session and the note."""
    add_session_arguments(parser)
    parser.add_argument("note", metavar="TEXT", help="at most 500 characters")


def run(args: argparse.Namespace) -> int:
    """Ask the engine."""
    return ask(args, "mark", {"note": args.note}, done="noted")


PLUGIN: Command = Command("cake-tui mark first 'browser closed'", add_arguments, run)
