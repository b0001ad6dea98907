"""A barrier's slot is that of the ring it speaks of: waits before its use, arrives after, expects with its copies.

A pipeline is as deep as its rings.
"""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir import program as ir
from cake_tui.ir.expr import Name, names_in
from cake_tui.ir.laws._clashes import clashes_of, line_of
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.ir.walk import reads, walk_body, writes
from cake_tui.model.diagnostic import Diagnostic

NAME = "slots-agree"


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield waits, arrives, expects and copies on a slot that the statements around them do not use."""
    for clash in clashes_of(subject, "slot"):
        path = subject.sites[clash.site][0]
        besides = f"; see {line_of(subject, clash.other)}" if clash.other is not None else ""
        yield subject.refuse(
            NAME,
            path,
            f"{clash.buffer} slot {clash.box[0][0]} is named, but the ring is used at another slot{besides}",
            f"the index that the statements around it use for the ring of {clash.buffer}",
        )
    yield from _fixed_slots(subject)
    yield from _depths(subject)


def _depths(subject: Subject) -> Iterator[Diagnostic]:
    """A pipeline goes round as many slots as the rings have that its variable indexes."""
    for path, loop in subject.sites:
        if not isinstance(loop, ir.For) or loop.stages is None:
            continue
        stages, buffers = subject.number(loop.stages), subject.buffers(path[0])
        used = {
            ref.buffer
            for statement in walk_body(loop.body)
            for ref in (*reads(statement), *writes(statement))
            if ref.indices and ref.indices[0] == Name(loop.variable)
        }
        for name in sorted(used):
            buffer = buffers[name]
            depth = subject.number(buffer.shape[0])
            if buffer.ring and buffer.space == "shared" and depth != stages:
                yield subject.refuse(
                    NAME,
                    path,
                    f"pipeline_stage is {stages}, and {name}, which {loop.variable} goes round, has {depth} slots",
                    f"pipeline_stage {depth}",
                    nearest=str(depth),
                    limit=f"slots:{name}",
                    asked=float(stages),
                    available=float(depth),
                    unit="slots",
                )


def _fixed_slots(subject: Subject) -> Iterator[Diagnostic]:
    """Slots named by a number: only an index that moves with a loop may go round."""
    for path, statement in subject.sites:
        match statement:
            case ir.Wait(name, slot) | ir.Arrive(name, slot) | ir.Expect(name, slot, _):
                pass
            case _:
                completes = getattr(statement, "completes", None)
                if completes is None or completes.slot is None:
                    continue
                name, slot = completes.name, completes.slot
        barrier = _barrier(subject, path[0], name)
        if barrier is None or not names_in(slot) <= subject.numbers.keys():
            continue
        slots, at = subject.number(barrier.slots), subject.number(slot)
        if not 0 <= at < slots:
            yield subject.refuse(
                NAME,
                path,
                f"slot {at} of {name}, which has {slots}",
                f"a slot below {slots}",
                nearest=str(slots - 1),
                limit=f"slots:{name}",
                asked=float(at),
                available=float(slots),
                unit="slots",
            )


def _barrier(subject: Subject, index: int, name: str) -> ir.Barrier | None:
    for path, statement in subject.sites:
        if path[0] == index and isinstance(statement, ir.Barrier) and statement.name == name:
            return statement
    return None


PLUGIN: Law = Law(NAME, check)
