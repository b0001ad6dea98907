"""Steps 2 to 6 of a candidate: edits, build of the program, laws, cost, lowering. Pure; nothing runs."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cake_tui import ir
from cake_tui.errors import Ended
from cake_tui.ir import cost, laws
from cake_tui.menu import Menu
from cake_tui.model.device import Device
from cake_tui.model.history import History
from cake_tui.model.lowered import Lowered
from cake_tui.model.move import Level, Proposal
from cake_tui.model.outcome import Rejected, Repeated
from cake_tui.model.problem import Problem, Shape
from cake_tui.model.schedule import Schedule

SMOKE_MINIMUM = 17  # smallest smoke size where the schedule needs no multiple: odd, above every vector


class Draft(msgspec.Struct, frozen=True):
    """A proposal that the laws passed and the cost model looked at; most of those screened out never get a source."""

    proposal: Proposal
    level: Level | None
    schedule: Schedule
    program: ir.Program | ir.Opaque
    estimate: cost.Estimate | None
    audit: bool = False


class Plan(msgspec.Struct, frozen=True):
    """A candidate on paper: what will be built, run and shown."""

    proposal: Proposal
    level: Level | None
    schedule: Schedule
    text: str  # program text; empty for an opaque template
    full: Lowered
    estimate: cost.Estimate | None
    audit: bool = False


def rewrite(proposal: Proposal, history: History, menu: Menu) -> tuple[Schedule, Level | None]:
    """Apply the proposal's moves to its base; raises Ended(Rejected) with the field that forbids it."""
    base = history.rows[proposal.base].schedule
    if base is None:
        raise ValueError(f"candidate {proposal.base} has no schedule")
    return menu.apply(base, proposal.moves)


def draft(
    proposal: Proposal,
    schedule: Schedule,
    level: Level | None,
    problem: Problem,
    device: Device,
    texts: Mapping[str, str],
) -> Draft:
    """Build the program, ask the laws and the cost model; raises Ended(Rejected)."""
    full = ir.full_build(problem, schedule, device, texts=texts)
    diagnostics = laws.verify(full, device, accumulation=problem.accumulation)
    if diagnostics:
        first = diagnostics[0]
        raise Ended(Rejected(step="laws", reason=first.text, diagnostics=diagnostics))
    return Draft(proposal, level, schedule, full, cost.estimate(full, device, problem.shapes))


def lower(one: Draft, problem: Problem, device: Device) -> Plan:
    """Make the full build's source; raises Ended(Rejected) for what the target's lowering lacks."""
    return Plan(
        proposal=one.proposal,
        level=one.level,
        schedule=one.schedule,
        text=ir.text_of(one.program),
        full=_named(ir.lower(one.program, device.target, device.arch, problem.shapes), one.schedule),
        estimate=one.estimate,
        audit=one.audit,
    )


def smoke_build(
    schedule: Schedule, problem: Problem, device: Device, smoke_fraction: float, texts: Mapping[str, str]
) -> Lowered:
    """Lower the smoke build: run-time sizes, small odd shapes. Made for what is built only; raises Ended(Rejected)."""
    program = ir.build(problem, schedule, device.target, device, runtime_sizes=True, texts=texts)
    multiples = ir.multiples(problem, schedule, device.target, device, texts=texts)
    shapes = smoke_shapes(problem, smoke_fraction, multiples)
    return _named(ir.lower(program, device.target, device.arch, shapes), schedule)


def _named(lowered: Lowered, schedule: Schedule) -> Lowered:
    """Say which schedule it is: switches are in no constant of the source, and no part of its identity."""
    return msgspec.structs.replace(lowered, structure=schedule.structure, constants=schedule.knobs)


def refuse_repeated(plan: Plan, history: History) -> None:
    """Raise Ended(Repeated) where the same lowered value is on record or on its way."""
    identity = plan.full.sha256
    number = history.by_source.get(identity)
    if number is not None:
        row = history.rows[number]
        outcome = f"{row.outcome} {row.verdict or ''}".strip()
        raise Ended(Repeated(step="lower", reason=f"same source as candidate {number}: {outcome}", of=number))
    for row in history.in_flight():
        if row.source_sha256 == identity:
            raise Ended(Repeated(step="lower", reason=f"same source as candidate {row.number}", of=row.number))


def smoke_shapes(problem: Problem, fraction: float, multiples: Mapping[str, int]) -> tuple[Shape, ...]:
    """Return small shapes for the smoke build, keeping the multiples that the schedule needs.

    Two a ranked shape: each size scaled by `fraction` to an odd count of its multiple, and a second one
    multiple smaller in every size, so that tile counts are odd in one and tails differ in the other.
    """
    shapes: list[Shape] = []
    for shape in problem.shapes:
        first: list[tuple[str, int]] = []
        for name, size in shape.sizes:
            step = multiples.get(name, 1)
            count = max(round(size * fraction), min(size, SMOKE_MINIMUM)) // step
            first.append((name, max(1, count | 1) * step))
        second = tuple((name, max(size - multiples.get(name, 1), multiples.get(name, 1))) for name, size in first)
        shapes += [Shape(tuple(first)), Shape(second)]
    return tuple(dict.fromkeys(shapes))
