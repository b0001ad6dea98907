"""Read a kernel's folder, prove its check, and build and check its first schedule at small shapes.

Nothing is timed and no session is made. Exit code 7 where the kernel computes something else than its
reference, does not build, or where the check cannot tell right from wrong.
"""

from __future__ import annotations

import argparse
import secrets
from typing import Any

from cake_tui import ir, kernels
from cake_tui.cli import Command
from cake_tui.cli._device import Chosen, add_device_arguments, choose
from cake_tui.cli._output import print_json
from cake_tui.cli._trial import Trial, said, trial
from cake_tui.config import Settings
from cake_tui.errors import FOUND_WRONG, OK, Ended
from cake_tui.model.jobs import SelfTested
from cake_tui.model.outcome import kind_of
from cake_tui.model.problem import Problem


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the kernel, the shape, the device and the form of the answer."""
    parser.add_argument("name", metavar="KERNEL", help="a folder under kernels/, yours or a packaged one")
    parser.add_argument(
        "--shape", metavar="M=..,N=..", action="append", default=[], help="other sizes; may be repeated"
    )
    add_device_arguments(parser)
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    """Check the kernel and print what was found."""
    kernels.refuse_mistakes(args.name)
    chosen = choose(args)
    kernel = kernels.read(args.name, target=chosen.device.target, shapes=args.shape)
    problem = kernel.problem
    compiler = chosen.backend.probe(chosen.device)
    found: dict[str, Any] = {
        "kernel": args.name,
        "title": kernel.title,
        "folder": str(kernel.folder),
        "shapes": [shape.text for shape in problem.shapes],
        "device": chosen.device.name,
        "compiler": compiler.version,
    }
    say = (lambda *_: None) if args.json else print
    say(f"{args.name}: {kernel.title}\n  folder     {kernel.folder}\n  shapes     {'; '.join(found['shapes'])}")
    say(f"  buffers    {', '.join(_buffer(problem))}\n  structures {', '.join(_structures(problem, chosen))}")
    say(f"  device     {chosen.device.name}\n  compiler   {compiler.version}")
    with trial(problem, chosen, f"check {args.name}", Settings().building.smoke_fraction) as one:
        wrong = _self_test(one, found, say) or _first_schedule(one, found, say)
    found["passed"] = wrong is None
    found["reason"] = wrong
    if args.json:
        print_json(found)
    else:
        print(f"{args.name}: {'ok' if wrong is None else f'WRONG: {wrong}'}")
    return OK if wrong is None else FOUND_WRONG


def _self_test(one: Trial, found: dict[str, Any], say: Any) -> str | None:
    """Prove the check; return what is wrong with it."""
    if one.problem.reference_is_first:
        say("  self-test  none: the kernel's own first setting is held as truth")
        return None
    tested = one.self_test()
    found["self_test"] = [
        {"case": name, "error_of_bound": error, "expected": expected, "found": happened}
        for name, error, expected, happened in tested.cases
    ]
    say(f"  self-test  {len(tested.cases)} cases, {_told(tested)} told right from wrong")
    for name, error, expected, happened in tested.cases:
        say(f"             {name:<42} {happened:<9} {error:10.3g} of the bound{_unlike(expected, happened)}")
    if tested.passed:
        return None
    return (
        f"the check cannot tell right from wrong here: max|y| = {tested.max_abs_output:.3g}, non-zero elements "
        f"{tested.nonzero_share:.1%}, tolerance {tested.tolerance:.3g}: change fill, scale or tolerance_abs"
    )


def _first_schedule(one: Trial, found: dict[str, Any], say: Any) -> str | None:
    """Build and check the smoke build of candidate 0; return how it failed."""
    device = one.chosen.device
    schedule = ir.first_schedule(one.problem, device.target, device)
    found["schedule"] = schedule.text
    try:
        one.on_paper(schedule)
        lowered = one.smoke(schedule)
        subject, built = one.build(lowered)
        say(f"  built      {schedule.text} with run-time sizes in {built.seconds:.1f} s")
        agreement = one.check_smoke(subject, secrets.randbits(31))
    except Ended as ended:
        found["outcome"] = kind_of(ended.outcome)
        return said(ended.outcome)
    shapes = "; ".join(plan.shape.text for plan in lowered.plans)
    found["max_abs_err"], found["bound_share"] = agreement.max_abs_err, agreement.bound_share
    say(
        f"  agrees     at {shapes}: largest error {agreement.max_abs_err:.2g}, {agreement.bound_share:.1%} of its bound"
    )
    return None


def _told(tested: SelfTested) -> int:
    return sum(expected == happened for _, _, expected, happened in tested.cases)


def _unlike(expected: str, happened: str) -> str:
    return "" if expected == happened else f"   WRONG: must be {expected}"


def _buffer(problem: Problem) -> list[str]:
    return [
        f"{b.name}[{', '.join(b.shape)}] {b.dtype}{'' if b.role == 'in' else f' {b.role}'}" for b in problem.buffers
    ]


def _structures(problem: Problem, chosen: Chosen) -> list[str]:
    """Name each structure with the number of its settings."""
    told = []
    for name in ir.structures(problem, chosen.device.target):
        count = 1
        for knob in ir.knobs(problem, name, chosen.device.target, chosen.device):
            count *= len(knob.values)
        told.append(f"{name} ({count} setting{'s' if count != 1 else ''})")
    return told


PLUGIN: Command = Command(
    example="cake-tui check matmul_bias_relu --shape M=100,N=77,K=33", add_arguments=add_arguments, run=run
)
