"""Go on with a session: paused, stopped, crashed or done; budget and numbering continue.

Settings may change: flags here, or lines edited in its session.toml; what changed is listed, old and new. A
session that crashed loses at most the step in flight. Raise --candidates or --hours to go on after DONE.
"""

from __future__ import annotations

import argparse

from cake_tui.cli import Command
from cake_tui.cli._session import add_session_arguments, ask, folder_of
from cake_tui.cli._settings import add_settings_arguments, given_settings
from cake_tui.cli._watch import run_engine
from cake_tui.engine.process import Announce
from cake_tui.errors import UserError
from cake_tui.store.lock import busy, engine_of
from cake_tui.store.snapshot import fold


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the session and what may change."""
    add_session_arguments(parser)
    add_settings_arguments(parser)
    parser.add_argument("--seed", type=int, metavar="S", help="another seed from here on")
    parser.add_argument("--agent", metavar="NAME[:ARGUMENT]", help="another agent from here on")
    parser.add_argument("--goal", metavar="'1.1 peer'", help="another goal from here on")
    parser.add_argument("--headless", action="store_true", help="run in the foreground, without a screen")


def run(args: argparse.Namespace) -> int:
    """Wake a paused engine, or start one where none runs."""
    path = folder_of(args).absolute()
    values = given_settings(args)
    if args.seed is not None and not 0 <= args.seed < 2**31:
        raise UserError(f"--seed: found {args.seed}, allowed: 0 to {2**31 - 1}")
    if engine_of(path) is not None:
        if fold(path).history.state != "paused":  # with the journal's tail: a pause of just now counts
            raise busy(path)
        if values:
            names = ", ".join(f"{name}={value}" for name, value in values.items())
            raise UserError(f'session "{path.name}" is only paused; first: cake-tui set {path.name} {names}')
        return ask(args, "resume", done="goes on")
    seed = str(args.seed) if args.seed is not None else None

    def work(announce: Announce) -> int:
        from cake_tui.cli._compose import go_on

        replaced = {"seed": seed, "agent": args.agent, "goal": args.goal}
        return go_on(path, values, announce, foreground=args.headless, **replaced)

    return run_engine(work, path, headless=args.headless)


PLUGIN: Command = Command("cake-tui resume first --candidates 900", add_arguments, run)
