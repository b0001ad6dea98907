"""Print a session's last events, one line each; with -f also the new ones, until its engine ends."""

from __future__ import annotations

import argparse
import time
from collections import deque

from cake_tui.cli import Command
from cake_tui.cli._output import print_json_line, print_line
from cake_tui.cli._session import add_session_arguments, folder_of
from cake_tui.errors import OK, UserError
from cake_tui.model.state import ENDED
from cake_tui.store.lock import engine_of
from cake_tui.store.progress import Progress

_POLL_S = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the session and how much of it."""
    add_session_arguments(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the engine ends")
    parser.add_argument("-n", "--lines", type=int, default=20, metavar="N", help="how many of the last (20)")
    parser.add_argument("--json", action="store_true", help="the events themselves")


def run(args: argparse.Namespace) -> int:
    """Fold the journal, print its end, follow it where asked to."""
    if args.lines < 0:
        raise UserError(f"-n: found {args.lines}, allowed: 0 or more")
    path = folder_of(args)
    progress = Progress(path)
    found, say = (progress.events, print_json_line) if args.json else (progress.lines, _say)
    for one in deque(found(), maxlen=args.lines):
        say(one)
    progress.refuse_without_session()
    while args.follow:
        alive = engine_of(path) is not None
        for one in found():
            say(one)
        if not alive or progress.history.state in ENDED:
            break
        time.sleep(_POLL_S)
    return OK


def _say(line: object) -> None:
    print_line(str(line))


PLUGIN: Command = Command("cake-tui tail first -f", add_arguments, run)
