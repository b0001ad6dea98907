"""Change settings of a running session, the budget among them; several at once are one change."""

from __future__ import annotations

import argparse

from cake_tui.cli import Command
from cake_tui.cli._session import add_session_arguments, ask
from cake_tui.cli._settings import values_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the session and the settings."""
    add_session_arguments(parser)
    parser.add_argument("values", metavar="SETTING=VALUE", nargs="+", help="settings and their new values")


def run(args: argparse.Namespace) -> int:
    """Check the settings here, then ask the engine."""
    values = values_of(args.values)
    return ask(args, "set", {"values": values}, done="set " + ", ".join(f"{k}={v}" for k, v in values.items()))


PLUGIN: Command = Command("cake-tui set first candidates=900", add_arguments, run)
