"""Every element of an output is written, finally by one place, and after every part that it depends on.

A place that writes the same element in several rounds or blocks must add to what is there (within one block) or be
atomic; atomics start from an output that an earlier launch wrote.
"""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir.analysis.accesses import Accessing
from cake_tui.ir.analysis.boxes import meet, spelled, uncovered
from cake_tui.ir.analysis.coverage import Reached
from cake_tui.ir.laws._covers import nearest_accesses
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.ir.program import Buffer
from cake_tui.model.diagnostic import Diagnostic

NAME = "outputs"


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield outputs with gaps or with several writers, looked at with each sample of sizes."""
    for buffer in subject.program.buffers:
        if buffer.space == "param" and buffer.access == "in":
            continue
        for sizes, accesses in subject.accesses_at_samples:
            mine = [access for access in accesses if access.ref.buffer == buffer.name]
            found = list(_judge(subject, buffer, mine, sizes))
            if found:
                yield from found
                break


def _judge(subject: Subject, buffer: Buffer, accesses: list[Accessing], sizes: dict[str, int]) -> Iterator[Diagnostic]:
    writes = [access for access in accesses if access.mode in ("write", "atomic")]
    at = "" if not sizes else " with " + ", ".join(f"{name} = {value}" for name, value in sizes.items())
    if not writes:
        yield Diagnostic(
            NAME,
            buffer.name,
            "nothing writes it",
            "a statement that writes it",
            line=subject.declared_line(buffer.name),
        )
        return
    covers: list[tuple[Accessing, Reached]] = []
    for access in writes:
        cover = subject.reached(access)
        if cover is None:
            return  # scattered: the check of the answer judges it
        yield from _rounds(subject, access, cover, accesses)
        covers.append((access, cover))
    yield from _overlaps(subject, covers, accesses)
    yield from _partial(subject, buffer, covers)
    if buffer.space == "param" and buffer.access == "out":
        extents = covers[0][0].axes
        whole = tuple((0, int(covers[0][0].scope.greatest(reach.extent)) - 1) for reach in extents)
        gap = uncovered(whole, [box for _, cover in covers for box in cover.boxes])
        if gap is not None:
            for access in nearest_accesses(gap, covers):
                yield subject.refuse(
                    NAME, access.path, f"{buffer.name}{spelled(gap)} is never written{at}", "every element written once"
                )


def _rounds(subject: Subject, access: Accessing, cover: Reached, accesses: list[Accessing]) -> Iterator[Diagnostic]:
    """Rounds and blocks that write the same elements again."""
    if access.mode == "atomic":
        return
    names = {around.variable: around for around in access.around}
    for variable in cover.absent:
        around = names[variable]
        if around.kind == "grid":
            yield subject.refuse(
                NAME,
                access.path,
                f"every block along {around.name} writes the same elements of {access.ref.buffer}",
                f"an index that names {around.name}, a branch on it, or atomic",
            )
        elif not access.update and not _read_in_loop(access, variable, accesses):
            yield subject.refuse(
                NAME,
                access.path,
                f"{access.ref.buffer} is written in every round of {around.name}, not once after all",
                f"the write behind the loop over {around.name}, or += on what is there",
            )
    if cover.twice:
        name = names[cover.twice].name if cover.twice in names else cover.twice.split(".")[0]
        yield subject.refuse(
            NAME,
            access.path,
            f"rounds of {name} overlap: elements of {access.ref.buffer} are written twice",
            f"tiles as long as the step of {name}",
        )


def _read_in_loop(access: Accessing, variable: str, accesses: list[Accessing]) -> bool:
    """Whether the loop also reads the buffer, so that its rounds build on each other."""
    depth = [around.variable for around in access.around].index(variable)
    shared = [around.variable for around in access.around][: depth + 1]
    return any(
        other.mode == "read" and [around.variable for around in other.around][: depth + 1] == shared
        for other in accesses
    )


def _overlaps(
    subject: Subject, covers: list[tuple[Accessing, Reached]], accesses: list[Accessing]
) -> Iterator[Diagnostic]:
    """Two places that write the same elements, the later one without taking what the earlier one left."""
    for at, (access, cover) in enumerate(covers):
        before = [(other, reach) for other, reach in covers[:at] if _both(access, other)]
        if access.mode == "atomic":
            earlier = [box for other, reach in before if other.launch < access.launch for box in reach.boxes]
            for box in cover.boxes:
                gap = uncovered(box, earlier)
                if gap is not None:
                    yield subject.refuse(
                        NAME,
                        access.path,
                        f"atomics add to {access.ref.buffer}{spelled(gap)}, which nothing wrote before",
                        "an earlier launch that zeroes it",
                    )
                    break
            continue
        for other, reach in before:
            clash = next((box for box in cover.boxes for old in reach.boxes if meet(box, old)), None)
            if clash is not None and not _builds_on(access, accesses):
                where = f"line {subject.lines[other.path]}"
                yield subject.refuse(
                    NAME,
                    access.path,
                    f"{access.ref.buffer}{spelled(clash)} is written here and at {where}",
                    "one place that writes it, or one that takes the other's value",
                )
                break


def _partial(subject: Subject, buffer: Buffer, covers: list[tuple[Accessing, Reached]]) -> Iterator[Diagnostic]:
    """A launch that takes up only part of what an earlier one wrote: the rest never gets its share."""
    for index in range(1, len(subject.program.launches)):
        mine = [(access, cover) for access, cover in covers if access.launch == index]
        boxes = [box for _, cover in mine for box in cover.boxes]
        earlier = [box for access, cover in covers if access.launch < index for box in cover.boxes]
        if not any(meet(box, old) for box in boxes for old in earlier):
            continue
        for old in earlier:
            gap = uncovered(old, boxes)
            if gap is not None:
                for access in nearest_accesses(gap, mine):
                    yield subject.refuse(
                        NAME,
                        access.path,
                        f"{buffer.name}{spelled(gap)} was written before and is passed over here",
                        "every element that the earlier launch wrote",
                    )
                return


def _builds_on(access: Accessing, accesses: list[Accessing]) -> bool:
    return access.update or any(other.mode == "read" and other.launch == access.launch for other in accesses)


def _both(one: Accessing, other: Accessing) -> bool:
    """Whether two statements can both run: they are not on the two sides of one branch."""
    sides = dict(one.branches)
    return all(sides.get(path, side) == side for path, side in other.branches)


PLUGIN: Law = Law(NAME, check)
