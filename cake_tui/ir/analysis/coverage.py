"""Which elements of a buffer a statement reaches over all blocks and rounds, as unions of boxes, at known sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from cake_tui.ir.analysis.accesses import Accessing, AxisReach
from cake_tui.ir.analysis.affine import Affine, Scope
from cake_tui.ir.analysis.boxes import Box, Reach

MOST_PIECES = 2048


@dataclass(frozen=True)
class Reached:
    """What an access reaches: boxes cut to the buffer; `twice` names a variable whose rounds overlap, "" where none.

    `absent` are the variables around the access that no index mentions: each of their rounds reaches the same.
    """

    boxes: tuple[Box, ...]
    twice: str
    absent: tuple[str, ...]


@lru_cache(maxsize=1 << 10)
def reached(access: Accessing, *, ring: bool = False) -> Reached | None:
    """Return what an access reaches; None where indices are opaque, diagonal or too scattered to say.

    A `ring`'s first axis goes round: all of it counts as reached.
    """
    scope = access.scope
    counts = _counts(access)
    if any(_count(counts, around.variable) < 1 for around in access.around):
        return Reached((), "", ())  # a loop without a round, or a branch that no round takes
    used: dict[str, int] = {}
    pieces: list[list[Reach]] = []
    twice = ""
    for at, reach in enumerate(access.axes):
        if ring and at == 0:
            pieces.append([(0, math.floor(scope.greatest(reach.extent)) - 1)])
            continue
        found = _axis(reach, scope, counts)
        if found is None:
            return None
        spans, overlapping, names = found
        for name in names:
            used[name] = used.get(name, 0) + 1
        twice = twice or overlapping
        extent = math.floor(scope.greatest(reach.extent))
        pieces.append([(max(0, low), min(extent - 1, high)) for low, high in spans if low < extent and high >= 0])
    if any(count > 1 for count in used.values()) or math.prod(len(spans) for spans in pieces) > MOST_PIECES:
        return None
    absent = tuple(
        around.variable
        for around in access.around
        if around.variable not in used and around.variable not in access.fixed and _count(counts, around.variable) > 1
    )
    return Reached(tuple(product(*pieces)), twice, absent)


def _count(counts: dict[str, Reach], name: str) -> int:
    low, high = counts[name]
    return high - low + 1


def _counts(access: Accessing) -> dict[str, Reach]:
    """The span of every variable of an access, cut by branch facts about it alone."""
    scope = access.scope
    spans: dict[str, Reach] = {}
    used = {name for reach in access.axes if reach.start is not None for name in reach.start.names}
    for name in used | {around.variable for around in access.around}:
        form = Affine.variable(name)
        spans[name] = (math.ceil(scope.least(form)), math.floor(scope.greatest(form)))
    for fact in scope.facts:
        if len(fact.terms) == 1:
            (name, factor), limit = fact.terms[0], -fact.constant
            if name not in spans:
                continue
            low, high = spans[name]
            if factor > 0:
                spans[name] = (low, min(high, math.floor(limit / factor)))
            else:
                spans[name] = (max(low, math.ceil(limit / factor)), high)
    return spans


def _axis(reach: AxisReach, scope: Scope, counts: dict[str, Reach]) -> tuple[list[Reach], str, list[str]] | None:
    """One axis: the spans reached, a variable whose rounds overlap, and the variables used."""
    if reach.start is None:
        return None
    start = reach.start
    length = math.floor(scope.greatest(reach.length))
    # Of what stands for a min or max it is not known which values it takes.
    if length < 1 or not all(scope.bounds[name].exact for name in start.names):
        return None
    base = start.constant
    names = [name for _, name in sorted((abs(value), name) for name, value in start.terms)]
    spans: list[Reach] = [(0, length - 1)]
    twice = ""
    for name in names:
        factor = start.coefficient(name)
        low, high = counts[name]
        if not isinstance(factor, int) or high < low:
            return None
        base += factor * (low if factor > 0 else high)
        spans, overlapping = _repeat(spans, abs(factor), high - low + 1)
        if spans is None or len(spans) > MOST_PIECES:
            return None
        if overlapping and not twice:
            twice = name
    if not isinstance(base, int):
        return None
    return [(low + base, high + base) for low, high in spans], twice, names


def _repeat(spans: list[Reach], step: int, count: int) -> tuple[list[Reach], bool]:
    """Shift spans by 0, step, 2·step …; merges what touches and says whether rounds overlap."""
    extent = spans[-1][1] - spans[0][0] + 1
    overlapping = count > 1 and step < extent
    if len(spans) == 1 and step <= extent:
        return [(spans[0][0], spans[0][1] + step * (count - 1))], overlapping
    if count * len(spans) > 4 * MOST_PIECES:
        return [*spans] * (MOST_PIECES + 1), overlapping
    shifted = sorted((low + step * at, high + step * at) for at in range(count) for low, high in spans)
    return merged(shifted), overlapping


def merged(spans: Iterable[Reach]) -> list[Reach]:
    """Join sorted spans that touch or overlap."""
    joined: list[Reach] = []
    for low, high in spans:
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return joined
