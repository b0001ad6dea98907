"""Put a move into a running session: it takes the first slot of the next round, from the best as it then is.

Several moves joined by + make one candidate. Take it back with cake-tui undo while it is queued.
"""

from __future__ import annotations

import argparse

from cake_tui.cli import Command
from cake_tui.cli._session import add_session_arguments, ask, folder_of
from cake_tui.errors import UserError
from cake_tui.menu import LiveMenu
from cake_tui.store.snapshot import fold


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the session, the move and why."""
    add_session_arguments(parser)
    parser.add_argument("move", metavar="MOVE", help="as 'apply_register_block(4, 8)'")
    parser.add_argument("--reason", default="", metavar="TEXT", help="why; the journal keeps it")


def run(args: argparse.Namespace) -> int:
    """Check the move against the menu here, then ask the engine."""
    history = fold(folder_of(args)).history
    if history.session is None:
        raise UserError(f'session "{args.name}" has no record yet')
    moves = LiveMenu(None, history.problem, history.device).current(history).parse_moves(args.move)
    text = " + ".join(move.text for move in moves)
    done = f"queued {text} as {{id}}; take it back: cake-tui undo {args.name}"
    return ask(args, "inject", {"text": text, "reason": args.reason}, done=done)


PLUGIN: Command = Command("cake-tui inject first 'apply_register_block(4, 8)'", add_arguments, run)
