"""What of a guard is left to test once what is proven over a tile is dropped."""

from __future__ import annotations

import msgspec

from cake_tui.ir.expr import Binary, Expr, names_in
from cake_tui.ir.lower.frame import Frame
from cake_tui.ir.lower.tiles import TileAxis, at_end, guard_parts
from cake_tui.ir.program import Guard


class Asked(msgspec.Struct, frozen=True):
    """What of a guard is left to test: for the whole statement, and for elements."""

    whole: tuple[Expr, ...]
    elements: tuple[Expr, ...]


def sort_guard(frame: Frame, guard: Guard | None, axes: tuple[TileAxis, ...]) -> Asked | None:
    """Drop what is proven over the tile; None where nothing of the tile passes."""
    whole: list[Expr] = []
    elements: list[Expr] = []
    inner: Frame | None = None
    for condition in guard_parts(guard):
        end = at_end(condition, axes)
        if end is not None:
            if not frame.proofs.surely(frame.tidy(end)):
                elements.append(condition)
            continue
        inner = inner or _over(frame, axes)
        simple = inner.tidy(condition)
        holds = inner.proofs.holds(simple)
        if holds is False:
            return None
        if holds is None:
            moves = any(axis.name in names_in(simple) for axis in axes)
            (elements if moves else whole).append(simple)
    return Asked(tuple(whole), tuple(elements))


def _over(frame: Frame, axes: tuple[TileAxis, ...]) -> Frame:
    """Return a frame in which the coordinates of a tile run over it."""
    inner = frame.child()
    for axis in axes:
        if axis.name:
            inner.declare(axis.name, axis.start, Binary("+", axis.start, axis.length))
    return inner
