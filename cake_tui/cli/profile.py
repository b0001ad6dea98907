"""Have a running session's best, or another candidate, looked at by the profiler now.

Its counters and what they mean are in the candidate's feedback after the current round. With --sanitize
compute-sanitizer looks for bad accesses and races instead. Needs a session on a GPU.
"""

from __future__ import annotations

import argparse
from typing import Any

from cake_tui.cli import Command
from cake_tui.cli._session import add_session_arguments, ask


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the session, the candidate and what is to look at it."""
    add_session_arguments(parser)
    parser.add_argument("--candidate", metavar="N", type=int, help="default: the best")
    parser.add_argument("--sanitize", action="store_true", help="look for bad accesses and races instead")


def run(args: argparse.Namespace) -> int:
    """Ask the engine."""
    body: dict[str, Any] = {} if args.candidate is None else {"candidate": args.candidate}
    if args.sanitize:
        body["sanitize"] = True
    return ask(args, "profile", body, done="it is looked at after this round")


PLUGIN: Command = Command("cake-tui profile first --candidate 12", add_arguments, run)
