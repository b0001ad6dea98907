"""Start a tuning session and watch it: the engine runs detached, closing the screen never stops it.

With --headless it runs in the foreground with a line an event; SIGHUP then ends it in order, unless it is
ignored (nohup). Without a terminal it starts detached and returns.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cake_tui.cli import Command
from cake_tui.cli._device import add_device_arguments
from cake_tui.cli._session import add_sessions_argument
from cake_tui.cli._settings import add_settings_arguments, given_settings
from cake_tui.cli._watch import run_engine
from cake_tui.engine.process import Announce
from cake_tui.errors import UserError
from cake_tui.store import name as names
from cake_tui.store.session import refuse_existing


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what a session is made of."""
    parser.add_argument("kernel", metavar="KERNEL", nargs="?", default="matmul_bias_relu", help="(matmul_bias_relu)")
    parser.add_argument("--name", help="the session's name (KERNEL-1, KERNEL-2, ...)")
    parser.add_argument("--shape", metavar="M=512,N=512", action="append", default=[], help="sizes; may be repeated")
    add_device_arguments(parser)
    parser.add_argument("--agent", metavar="NAME[:ARGUMENT]", default="bandit", help="who proposes (bandit)")
    add_settings_arguments(parser)
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of inputs and agents (0)")
    parser.add_argument("--from", dest="origin", metavar="SESSION[:N]|FILE", help="candidate 0 (the naive schedule)")
    parser.add_argument("--goal", metavar="'1.1 peer'", help="stop when this is reached: peer, baseline, us, tflops")
    add_sessions_argument(parser)
    parser.add_argument("--headless", action="store_true", help="run in the foreground, without a screen")


def run(args: argparse.Namespace) -> int:
    """Check what can be checked without making anything, then start the engine."""
    folder = names.folder_of(args.sessions).absolute()
    name = names.checked(args.name) if args.name is not None else names.free_name(args.kernel, folder)
    settings = given_settings(args)
    if not 0 <= args.seed < 2**31:
        raise UserError(f"--seed: found {args.seed}, allowed: 0 to {2**31 - 1}")
    refuse_existing(folder / name)
    return run_engine(
        lambda announce: _work(args, folder, name, settings, announce), folder / name, headless=args.headless
    )


def _work(args: argparse.Namespace, folder: Path, name: str, settings: dict[str, object], announce: Announce) -> int:
    """In the engine's process: all that is heavy is imported here."""
    from cake_tui import kernels, menu
    from cake_tui.cli._compose import Order, start
    from cake_tui.cli._device import choose, with_threads
    from cake_tui.cli._origin import origin_of
    from cake_tui.config import Settings

    origin = origin_of(args.origin, folder) if args.origin is not None else None
    # The user's own mistakes come before what the machine lacks.
    menu.refuse_mistakes()
    kernels.refuse_mistakes(args.kernel)
    chosen = choose(args)
    whole = Settings.of_device(chosen.device.kind).changed(**settings)
    chosen = with_threads(chosen, whole.building.threads)
    problem = kernels.load(args.kernel, target=chosen.device.target, shapes=args.shape, seed=args.seed)
    order = Order(
        name, folder, chosen, problem, args.agent, whole, args.goal, origin
    )  # fmt: skip
    return start(order, announce, foreground=args.headless)


PLUGIN: Command = Command("cake-tui run matmul_bias_relu --name first --candidates 150", add_arguments, run)
