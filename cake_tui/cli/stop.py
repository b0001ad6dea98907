"""Stop a running session in order: candidates in flight end as interrupted, the rest stays; resume goes on."""

from __future__ import annotations

import argparse
import time

from cake_tui.cli import Command
from cake_tui.cli._session import add_session_arguments, ask, folder_of
from cake_tui.store.lock import engine_of

_ENDING_S = 20.0


def run(args: argparse.Namespace) -> int:
    """Ask the engine and wait until it has gone."""
    code = ask(args, "stop", done="stopping")
    path = folder_of(args)
    deadline = time.monotonic() + _ENDING_S
    while engine_of(path) is not None and time.monotonic() < deadline:
        time.sleep(0.05)
    if engine_of(path) is None:
        print(f"{args.name}: stopped; go on with: cake-tui resume {args.name}")
    return code


PLUGIN: Command = Command("cake-tui stop first", add_session_arguments, run)
