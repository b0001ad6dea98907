"""Workspaces, and outputs that are read again, are written before: by an earlier launch, or before by the same block.

Blocks of one launch run in any order: what another block of it writes cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir.analysis.accesses import Accessing
from cake_tui.ir.analysis.boxes import Box, spelled, uncovered
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.ir.program import Buffer
from cake_tui.model.diagnostic import Diagnostic

NAME = "written-before-read"


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield reads of global memory that no write comes before, looked at with each sample of sizes."""
    for buffer in subject.program.buffers:
        if buffer.space == "param" and buffer.access != "out":
            continue
        for _, accesses in subject.accesses_at_samples:
            found = list(_judge(subject, buffer, [access for access in accesses if access.ref.buffer == buffer.name]))
            if found:
                yield from found
                break


def _judge(subject: Subject, buffer: Buffer, accesses: list[Accessing]) -> Iterator[Diagnostic]:
    for at, access in enumerate(accesses):
        if access.mode != "read":
            continue
        cover = subject.reached(access)
        if cover is None:
            continue
        boxes: list[Box] = []
        unknown = False
        for number, other in enumerate(accesses):
            before = other.launch < access.launch or (number < at and _same_block(other, access))
            if other.mode != "read" and before:
                written = subject.reached(other)
                unknown = unknown or written is None
                boxes += written.boxes if written is not None else ()
        if unknown:
            continue
        for box in cover.boxes:
            gap = uncovered(box, boxes)
            if gap is not None:
                yield subject.refuse(
                    NAME,
                    access.path,
                    f"{buffer.name}{spelled(gap)} is read, but nothing has written it by then",
                    "an earlier launch that writes it",
                )
                break


def _same_block(write: Accessing, read: Accessing) -> bool:
    """Whether a write of the same launch reaches, in each block, what the read reaches there."""
    if write.launch != read.launch:
        return False
    grid = [around.variable for around in read.around if around.kind == "grid"]
    for variable in grid:
        mine = [reach.start.coefficient(variable) if reach.start else None for reach in read.axes]
        theirs = [reach.start.coefficient(variable) if reach.start else None for reach in write.axes]
        if mine != theirs:
            return False
    return True


PLUGIN: Law = Law(NAME, check)
