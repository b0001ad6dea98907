"""Let agents use actions again that were disabled in this session."""

from __future__ import annotations

import argparse

from cake_tui.cli import Command
from cake_tui.cli._session import add_session_arguments, ask


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the session and the actions."""
    add_session_arguments(parser)
    parser.add_argument("actions", metavar="ACTION", nargs="+", help="their names")


def run(args: argparse.Namespace) -> int:
    """Ask the engine."""
    return ask(args, "enable", {"actions": args.actions}, done=f"enabled {', '.join(args.actions)}")


PLUGIN: Command = Command("cake-tui enable first apply_unroll", add_arguments, run)
