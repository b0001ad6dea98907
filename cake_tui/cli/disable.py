"""Keep agents from using actions in this session; queued moves stay."""

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
    return ask(args, "disable", {"actions": args.actions}, done=f"disabled {', '.join(args.actions)}")


PLUGIN: Command = Command("cake-tui disable first apply_unroll", add_arguments, run)
