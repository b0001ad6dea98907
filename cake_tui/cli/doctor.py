"""Say what this machine has and lacks: compiler, device, limits, locks, GPU driver, packages, terminal.

With --gate it times a kernel against itself, over and over, as the gate would a candidate, and prints how
often equal kernels were told apart: the false accepts that a session on this machine must expect.
Exit code 3 where no kernel can run here, 7 where the gate accepted more equal kernels than it may.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from cake_tui import ir, kernels
from cake_tui.cli import Command
from cake_tui.cli._device import Chosen, add_device_arguments, choose, monitor_of
from cake_tui.cli._machine import look, usable
from cake_tui.cli._output import print_json
from cake_tui.cli._session import add_sessions_argument
from cake_tui.cli._trial import Trial, trial
from cake_tui.config import Settings
from cake_tui.errors import ENVIRONMENT, FOUND_WRONG, NO_CANDIDATE, OK, Ended, UserError
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Schedule
from cake_tui.steps.noise import Guard, SelfGate, compare_with_itself
from cake_tui.store import name, snapshot

_MARKS = {"ok": "ok", "note": "--", "missing": "!!"}
_SEED = 20_260_101


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to look at and how to print it."""
    parser.add_argument("--gate", action="store_true", help="time a kernel against itself and count false accepts")
    parser.add_argument("--comparisons", metavar="N", type=int, default=20, help="with --gate: how many (20)")
    parser.add_argument("--session", metavar="NAME", help="with --gate: its best kernel, as it was tuned")
    parser.add_argument(
        "--kernel", metavar="KERNEL", default="matmul_bias_relu", help="with --gate: (matmul_bias_relu)"
    )
    parser.add_argument("--shape", metavar="M=..,N=..", action="append", default=[], help="with --gate: other sizes")
    add_sessions_argument(parser)
    add_device_arguments(parser)
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    """Print the report."""
    if args.gate:
        return _gate(args)
    can_run = usable()
    found = []
    for one in look():
        found.append(one)
        if not args.json:
            print(f"{_MARKS[one.state]} {one.subject:<13} {one.text}")
            if one.do and one.state != "ok":
                print(f"   {'':<13} -> {one.do}")
    if args.json:
        print_json({"usable": can_run, "found": found})
    return OK if can_run else ENVIRONMENT


# --- the gate tried on equal kernels ------------------------------------------------------------------


def _gate(args: argparse.Namespace) -> int:
    if not 1 <= args.comparisons <= 100_000:
        raise UserError(f"--comparisons: found {args.comparisons}, allowed: 1 to 100000")
    chosen = choose(args)
    settings = Settings.of_device(chosen.device.kind)
    problem, schedule = _subject(args, chosen)
    with trial(problem, chosen, "doctor --gate", settings.building.smoke_fraction) as one:
        try:
            result = _last(_compared(one, schedule, settings, args))
        except Ended as ended:
            raise UserError(f"{schedule.text} cannot be timed: {ended.outcome.reason}", ENVIRONMENT) from None
    allowed = 1 + args.comparisons // 100
    if args.json:
        print_json({"schedule": schedule.text, "allowed": allowed, "result": result})
    else:
        print(
            f"{result.comparisons} self-comparisons of {schedule.text}: {result.accepted} false accepts "
            f"(at most {allowed}), {result.rejected} rejected, {result.undecided} undecided, {result.noisy} noisy; "
            f"pair noise {result.pair_noise:.2%}, {result.series} series"
        )
    return OK if result.accepted <= allowed else FOUND_WRONG


_PROMISING = ("packed", "tiled")


def _subject(args: argparse.Namespace, chosen: Chosen) -> tuple[Problem, Schedule]:
    """Return what is timed: a session's best, or the kernel's most promising structure at its defaults."""
    if args.session is not None:
        history = snapshot.fold(name.find(args.session, args.sessions)).history
        row = history.rows[history.incumbent] if history.incumbent is not None else None
        if row is None or row.schedule is None:
            raise UserError(f'session "{args.session}" has no best kernel yet', NO_CANDIDATE)
        return history.problem, row.schedule
    target, device = chosen.device.target, chosen.device
    problem = kernels.load(args.kernel, target=target, shapes=args.shape)
    structures = ir.structures(problem, target)
    structure = next((name for name in _PROMISING if name in structures), structures[0])
    return problem, ir.default_schedule(problem, structure, target, device)


def _compared(one: Trial, schedule: Schedule, settings: Settings, args: argparse.Namespace) -> Iterator[SelfGate]:
    subject, _ = one.build(one.on_paper(schedule).full)
    guard = Guard(settings.running.guard_refusals, monitor_of(one.chosen.device))
    take = guard.watched(one.self_pairs(subject, settings.gating.sample_ms, _SEED))
    for result in compare_with_itself(settings.gating, take, args.comparisons):
        if not args.json:
            print(f"\r{result.comparisons} of {args.comparisons}: {result.accepted} accepted", end="", file=sys.stderr)
        yield result
    if not args.json:
        print(file=sys.stderr)
        for code in guard.codes:
            print(f"stale clocks seen: {code}", file=sys.stderr)


def _last(results: Iterator[SelfGate]) -> SelfGate:
    """Return the totals after the last comparison."""
    *_, last = results
    return last


PLUGIN: Command = Command(example="cake-tui doctor --gate --comparisons 100", add_arguments=add_arguments, run=run)
