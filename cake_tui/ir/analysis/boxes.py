"""Boxes of whole numbers, one inclusive span an axis, and what is left of one when others are cut out of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Reach = tuple[int, int]
Spans = Mapping[str, Reach]
Box = tuple[Reach, ...]


def empty(box: Box) -> bool:
    """Whether an axis has no element."""
    for low, high in box:  # noqa: SIM110 - asked most of all: a generator costs more than the loop
        if low > high:
            return True
    return False


def meet(one: Box, other: Box) -> bool:
    """Whether two boxes of the same buffer share an element."""
    for (low, high), (other_low, other_high) in zip(one, other):  # noqa: SIM110 - as above
        if low > other_high or other_low > high:
            return False
    return True


def within(inner: Box, outer: Box) -> bool:
    """Whether `outer` holds all of `inner`."""
    return all(outer_low <= low and high <= outer_high for (low, high), (outer_low, outer_high) in zip(inner, outer))


def cut(box: Box, hole: Box) -> list[Box]:
    """Return disjoint boxes that hold what is in `box` and not in `hole`."""
    if not meet(box, hole):
        return [box]
    left: list[Box] = []
    rest = list(box)
    for axis, ((low, high), (hole_low, hole_high)) in enumerate(zip(box, hole)):
        if low < hole_low:
            left.append((*rest[:axis], (low, hole_low - 1), *rest[axis + 1 :]))
        if hole_high < high:
            left.append((*rest[:axis], (hole_high + 1, high), *rest[axis + 1 :]))
        rest[axis] = (max(low, hole_low), min(high, hole_high))
    return left


def uncovered(box: Box, covers: Iterable[Box]) -> Box | None:
    """Return a part of `box` that none of `covers` holds, or None where all of it is covered."""
    left = [] if empty(box) else [box]
    for cover in covers:
        if not left:
            return None
        left = [piece for part in left for piece in cut(part, cover)]
    return left[0] if left else None


def spelled(box: Box) -> str:
    """``[0, 3..7]``, as a message shows it."""
    return "[" + ", ".join(str(low) if low == high else f"{low}..{high}" for low, high in box) + "]"
