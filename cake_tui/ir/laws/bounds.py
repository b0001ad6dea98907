"""Every access stays in its buffer, or carries a `where` that keeps it there, for all sizes that the program allows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from cake_tui.ir import program as ir
from cake_tui.ir.analysis.accesses import Accessing, AxisReach
from cake_tui.ir.analysis.affine import Affine
from cake_tui.ir.expr import show
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.model.diagnostic import Diagnostic

NAME = "bounds"


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield accesses that cannot be shown to stay inside; an index read from a buffer is not judged.

    An index that no form says (a product of a block and a size) is looked at with each sample of sizes.
    """
    unsaid: dict[int, list[int]] = {}
    for at, access in enumerate(subject.accesses):
        for axis, reach in enumerate(access.axes):
            if reach.element is None:
                unsaid.setdefault(at, []).append(axis)
            elif not _inside(access, axis):
                yield _outside(subject, access, axis, reach)
    found: dict[tuple[int, int], Diagnostic] = {}
    for _, accesses in subject.accesses_at_samples:
        for at, axes in unsaid.items():
            for axis in axes:
                if not _inside(accesses[at], axis):
                    found.setdefault((at, axis), _outside(subject, accesses[at], axis, accesses[at].axes[axis]))
    yield from found.values()


@lru_cache(maxsize=1 << 11)
def _inside(access: Accessing, axis: int) -> bool:
    reach = access.axes[axis]
    if reach.element is None or (access.buffer.ring and axis == 0):
        return True
    return _at_most_zero(access, -reach.element) and _at_most_zero(access, reach.element - reach.extent + 1)


def _at_most_zero(access: Accessing, form: Affine) -> bool:
    if access.scope.at_most_zero(form):
        return True
    return bool(access.guards) and access.scope.know(*access.guards).at_most_zero(form)


def _outside(subject: Subject, access: Accessing, axis: int, reach: AxisReach) -> Diagnostic:
    assert reach.element is not None  # the caller looked
    low, high = access.scope.least(reach.element), access.scope.greatest(reach.element)
    extent = access.scope.greatest(reach.extent)
    index = show(access.ref)
    guarded = getattr(access.statement, "where", None)
    too_wide = ", and its where does not keep it inside" if guarded is not None else ""
    bound = show(access.buffer.shape[axis])
    guard = f"a where that keeps axis {axis} below {bound}"
    if isinstance(access.statement, ir.If | ir.Declare):
        guard = f"an index below {bound}"
    return subject.refuse(
        NAME,
        access.path,
        f"{index} reaches {low}..{high} on axis {axis}, which has {reach.extent}{too_wide}",
        guard,
        field=f"{index} in {subject.words(access.path)}",
        limit=f"extent:{access.buffer.name}.{axis}",
        asked=float(high + 1),
        available=float(extent),
        unit="elements",
    )


PLUGIN: Law = Law(NAME, check)
