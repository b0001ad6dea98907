"""Every element that is put into a shared tile is read again: an index that is off by one leaves some behind."""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir.analysis.accesses import Accessing
from cake_tui.ir.analysis.boxes import Box, spelled, uncovered
from cake_tui.ir.analysis.coverage import Reached
from cake_tui.ir.laws._covers import nearest_accesses
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.ir.program import Buffer
from cake_tui.model.diagnostic import Diagnostic

NAME = "tiles-used"


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield shared tiles of which a part is written and never read; tiles that nothing reads by name are left alone."""
    for index in range(len(subject.program.launches)):
        for _, buffer in subject.declares(index, "shared"):
            for _, accesses in subject.accesses_at_samples[:1]:
                mine = [access for access in accesses if access.launch == index and access.ref.buffer == buffer.name]
                yield from _judge(subject, buffer, mine)


def _judge(subject: Subject, buffer: Buffer, accesses: list[Accessing]) -> Iterator[Diagnostic]:
    covers: list[tuple[Accessing, Reached]] = []
    for access in accesses:
        cover = subject.reached(access, ring=buffer.ring)
        if cover is None:
            return
        covers.append((access, cover))
    reads = [(access, cover) for access, cover in covers if access.mode == "read"]
    boxes: list[Box] = [box for _, cover in reads for box in cover.boxes]
    if not reads:
        return
    for access, cover in covers:
        if access.mode == "read":
            continue
        for box in cover.boxes:
            gap = uncovered(box, boxes)
            if gap is not None:
                for reader in nearest_accesses(gap, reads):
                    yield subject.refuse(
                        NAME,
                        reader.path,
                        f"{buffer.name}{spelled(gap)} is written and never read",
                        "reads of the whole tile",
                    )
                return


PLUGIN: Law = Law(NAME, check)
