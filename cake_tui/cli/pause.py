"""Pause a running session: it stops between two steps of a candidate and keeps everything.

The time that it is paused does not count against its budget. Go on with: cake-tui resume NAME
"""

from __future__ import annotations

import argparse

from cake_tui.cli import Command
from cake_tui.cli._session import add_session_arguments, ask


def run(args: argparse.Namespace) -> int:
    """Ask the engine."""
    return ask(args, "pause", done="paused; go on with: cake-tui resume " + args.name)


PLUGIN: Command = Command("cake-tui pause first", add_session_arguments, run)
