"""Put a move into a running session: it takes the first slot of the next round, from the best as it then is.

One that a law forbids is refused at once, as in the viewer. Several moves joined by + make one candidate; cake-tui
undo takes it back while it is queued. The action space grows as well: --add takes a file with an [[action]] table,
--values gives a parameter other legal values. Both change actions.toml, which the run reads again before its next
round.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cake_tui.cli import Command
from cake_tui.cli._session import add_session_arguments, ask, folder_of, refuse_unless_running
from cake_tui.errors import UserError
from cake_tui.menu.words import typed_values
from cake_tui.model.history import History
from cake_tui.store.snapshot import fold_session
from cake_tui.toml import read_text, shown_path
from cake_tui.tui.moves import Moves

_MOST = 1_000_000  # characters of an action on standard input


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the session, the move and why, or the change of the action space."""
    add_session_arguments(parser)
    parser.add_argument("move", metavar="MOVE", nargs="?", help="as 'apply_register_block(4, 8)'")
    parser.add_argument("--reason", default="", metavar="TEXT", help="why; the journal keeps it")
    parser.add_argument("--add", metavar="FILE", help="an [[action]] table to add (- reads it here)")
    parser.add_argument("--values", metavar="ACTION.PARAMETER=V,V,...", help="other legal values of a parameter")


def run(args: argparse.Namespace) -> int:
    """Check what is asked here, then ask the engine."""
    if sum(one is not None for one in (args.move, args.add, args.values)) != 1:
        raise UserError("cake-tui inject: one of MOVE, --add and --values is needed")
    if args.add is not None:
        return ask(
            args, "actions", {"add": _read(args.add), "file": _label(args.add)}, done="added; the next round may use it"
        )
    if args.values is not None:
        body = _values(args.values)
        return ask(args, "actions", body, done=f"set {args.values}; the next round may use them")
    path = folder_of(args)
    history = fold_session(path).history
    refuse_unless_running(path)
    text = _judged(history, args.move)
    done = f"queued {text} as {{id}}; take it back: cake-tui undo {args.name}"
    return ask(args, "inject", {"text": text, "reason": args.reason}, done=done)


def _judged(history: History, text: str) -> str:
    """Return the move as the inject dialog would send it; raises UserError with the dialog's words where it would not.

    Before there is a measured kernel nobody can tell what a law says of a move from it: it is queued then.
    """
    moves = Moves(history)
    whole = " + ".join(move.text for move in moves.menu.parse_moves(text))
    judged = moves.judge(text)
    if not judged.legal and moves.base is not None:
        raise UserError("\n".join(judged.lines))
    return whole


def _read(name: str) -> str:
    try:
        return sys.stdin.read(_MOST) if name == "-" else read_text(Path(name))
    except UnicodeDecodeError:
        raise UserError("--add: what came on standard input is no UTF-8 text") from None
    except UserError as error:
        raise UserError(f"--add: {error}") from None


def _label(name: str) -> str:
    return "standard input" if name == "-" else shown_path(Path(name))


def _values(text: str) -> dict[str, object]:
    place, equals, listed = text.partition("=")
    action, dot, parameter = place.strip().partition(".")
    values = typed_values(listed)
    if not equals or not dot or not action or not parameter or not values:
        raise UserError(f'--values: found "{text}", allowed: ACTION.PARAMETER=V,V,..., as apply_unroll.factor=1,2,4')
    return {"action": action, "parameter": parameter, "values": values}


PLUGIN: Command = Command("cake-tui inject first 'apply_register_block(4, 8)'", add_arguments, run)
