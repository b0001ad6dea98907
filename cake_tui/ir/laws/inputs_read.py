"""What a program reads of its inputs leaves no gap: tiles that begin late or end early forget elements.

An input that no statement reads at all is left alone, and so is one whose indices are read from a buffer.
"""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir.analysis.accesses import Accessing
from cake_tui.ir.analysis.boxes import spelled, uncovered
from cake_tui.ir.analysis.coverage import Reached
from cake_tui.ir.laws._covers import nearest_accesses
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.ir.program import Buffer
from cake_tui.model.diagnostic import Diagnostic

NAME = "inputs-read"


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield inputs with elements that no statement reads, looked at with each sample of sizes."""
    for buffer in subject.program.buffers:
        if buffer.space == "param" and buffer.access == "out":
            continue
        for _, accesses in subject.accesses_at_samples:
            found = list(_judge(subject, buffer, [access for access in accesses if access.ref.buffer == buffer.name]))
            if found:
                yield from found
                break


def _judge(subject: Subject, buffer: Buffer, accesses: list[Accessing]) -> Iterator[Diagnostic]:
    covers: list[tuple[Accessing, Reached]] = []
    for access in accesses:
        if access.mode != "read":
            continue
        cover = subject.reached(access)
        if cover is None:
            return
        covers.append((access, cover))
    if not covers:
        return
    access = covers[0][0]
    whole = tuple((0, int(access.scope.greatest(reach.extent)) - 1) for reach in access.axes)
    gap = uncovered(whole, [box for _, cover in covers for box in cover.boxes])
    if gap is not None:
        for access in nearest_accesses(gap, covers):
            yield subject.refuse(
                NAME,
                access.path,
                f"{buffer.name}{spelled(gap)} is never read",
                "tiles that begin at 0 and reach the end",
            )


PLUGIN: Law = Law(NAME, check)
