"""Take back a queued move that no candidate has taken up yet: the last one, or the one named by its id."""

from __future__ import annotations

import argparse

from cake_tui.cli import Command
from cake_tui.cli._session import add_session_arguments, ask


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the session and the request."""
    add_session_arguments(parser)
    parser.add_argument("--request", metavar="ID", help="which queued move (the last one)")


def run(args: argparse.Namespace) -> int:
    """Ask the engine."""
    return ask(args, "undo", {"request": args.request} if args.request else {}, done="taken back")


PLUGIN: Command = Command("cake-tui undo first", add_arguments, run)
