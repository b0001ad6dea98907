"""Which blocks of a launch are run: the first, the last where loops depend on it, all kinds where branches do."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, product

from cake_tui.ir import program as ir
from cake_tui.ir.analysis.boxes import Reach
from cake_tui.ir.analysis.forms import Unbounded
from cake_tui.ir.analysis.intervals import span_of
from cake_tui.ir.analysis.spans import truth
from cake_tui.ir.expr import COMPARISONS, Binary, Expr, names_in, walk
from cake_tui.ir.program import Launch
from cake_tui.ir.walk import walk_body

MOST_ASKED = 1024  # blocks along an axis that are looked at for what a branch says there
MOST_PLACES = 12  # of an axis
MOST_CORNERS = 48


def corners(launch: Launch, blocks: Sequence[int], spans: dict[str, Reach]) -> list[dict[str, Reach]]:
    """Return the blocks' places on the grid; `blocks` are its extents."""
    names = [axis.name for axis in launch.axes]
    asked, loops = _asked(launch), _loops(launch)
    branching = _behind({name for one in asked for name in names_in(one)}, loops)
    bounds = _behind({name for loop in loops for name in names_in(loop.start) | names_in(loop.stop)}, loops)
    ends = [
        _turns(name, extent, asked, loops, spans) if name in branching else [0] for name, extent in zip(names, blocks)
    ]
    places = [dict(zip(names, place)) for place in islice(product(*ends), MOST_CORNERS)]
    if bounds & set(names):
        places.append({name: extent - 1 for name, extent in zip(names, blocks)})
    return [{name: (at, at) for name, at in place.items()} for place in places]


def _asked(launch: Launch) -> list[Expr]:
    """The comparisons in the conditions of branches."""
    return [
        one
        for statement in walk_body(launch.body)
        if isinstance(statement, ir.If)
        for one in walk(statement.condition)
        if isinstance(one, Binary) and one.op in COMPARISONS
    ]


def _loops(launch: Launch) -> list[ir.For]:
    return [statement for statement in walk_body(launch.body) if isinstance(statement, ir.For)]


def _behind(names: set[str], loops: Sequence[ir.For]) -> set[str]:
    """Names, and those that the bounds of loops over them depend on."""
    for loop in reversed(loops):
        if loop.variable in names:
            names = names | names_in(loop.start) | names_in(loop.stop)
    return names


def _turns(
    axis: str, extent: int, asked: Sequence[Expr], loops: Sequence[ir.For], spans: dict[str, Reach]
) -> list[int]:
    """Both ends of an axis, and the blocks at which a comparison has another answer than in the block before."""
    found = {0, extent - 1}
    before: list[bool | None] = []
    for at in range(min(extent, MOST_ASKED) if extent > 2 else 0):
        here = {**spans, axis: (at, at)}
        for loop in loops:
            try:
                here[loop.variable] = span_of(loop.start, here)[0], span_of(loop.stop, here)[1] - 1
            except Unbounded:
                here.pop(loop.variable, None)
        now = [truth(one, here) for one in asked]
        if before and now != before:
            found |= {at - 1, at}
        before = now
        if len(found) >= MOST_PLACES:
            break
    return sorted(found)
