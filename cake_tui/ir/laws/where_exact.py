"""A `where` cuts at the buffer's end and nowhere before it: elements that are there are not dropped."""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir.analysis.accesses import Accessing
from cake_tui.ir.analysis.affine import Affine
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.ir.walk import Path
from cake_tui.model.diagnostic import Diagnostic

NAME = "where-exact"


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield guards that stop a fixed number of elements before the end of an axis that they are about."""
    by_statement: dict[Path, list[Accessing]] = {}
    for access in subject.accesses:
        if access.guards:
            by_statement.setdefault(access.path, []).append(access)
    for path, accesses in by_statement.items():
        ends = [
            (access, axis, reach.element - reach.extent + 1, -reach.element)
            for access in accesses
            for axis, reach in enumerate(access.axes)
            if reach.element is not None and reach.element.terms
        ]
        for guard in dict.fromkeys(guard for access in accesses for guard in access.guards):
            dropped = _dropped(guard, ends)
            if dropped is None:
                continue
            access, axis, count = dropped
            yield subject.refuse(
                NAME,
                path,
                f"the where drops {count} element{'s' if count > 1 else ''} of {access.ref.buffer} on axis {axis}",
                "a where that ends at the axis' extent",
                limit=f"dropped:{access.ref.buffer}.{axis}",
                asked=float(count),
                available=0.0,
                unit="elements",
            )


def _dropped(guard: Affine, ends: list[tuple[Accessing, int, Affine, Affine]]) -> tuple[Accessing, int, int] | None:
    """The axis that a guard cuts short, unless it ends another axis of the statement exactly."""
    short = None
    for access, axis, high, low in ends:
        for end in (high, low):
            difference = (guard - end).value
            if difference == 0:
                return None
            if difference is not None and difference > 0 and short is None:
                short = (access, axis, int(difference))
    return short


PLUGIN: Law = Law(NAME, check)
