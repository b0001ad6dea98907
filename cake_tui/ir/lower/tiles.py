"""Tiles in C: the loops over a reference's axes, addresses, and what a guard asks of each of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from cake_tui.ir.expr import All, Binary, Expr, Name, Number, Ref, Span, conjuncts, names_in, substitute
from cake_tui.ir.program import Buffer, Guard, Lanes
from cake_tui.ir.refusal import refuse

ZERO = Number(0)


class TileAxis(msgspec.Struct, frozen=True, cache_hash=True):
    """One axis of a tile: which axis of its buffer, first element, number of elements, name of the coordinate."""

    axis: int
    start: Expr
    length: Expr
    name: str


class Shaped(msgspec.Struct, frozen=True, cache_hash=True):
    """A reference with its buffer and the axes that are no single element."""

    ref: Ref
    buffer: Buffer
    axes: tuple[TileAxis, ...]

    @property
    def lanes(self) -> Expr | None:
        """SIMD lanes of a register buffer, None for memory."""
        spread = self.buffer.spread
        return spread.count if isinstance(spread, Lanes) else None

    @property
    def contiguous(self) -> bool:
        """Whether the tile's last axis is the buffer's last one."""
        return bool(self.axes) and self.axes[-1].axis == len(self.buffer.shape) - 1


def shaped(ref: Ref, buffers: Mapping[str, Buffer]) -> Shaped:
    """Look up a reference's buffer and tile; axes behind the last index are whole."""
    return _shaped(ref, buffers[ref.buffer])


@lru_cache(maxsize=1 << 12)
def _shaped(ref: Ref, buffer: Buffer) -> Shaped:
    if len(ref.indices) > len(buffer.shape):
        raise refuse(
            "lowering", ref.buffer, f"{len(ref.indices)} indices", f"at most {len(buffer.shape)}", step="lower"
        )
    axes = []
    for axis, extent in enumerate(buffer.shape):
        index = ref.indices[axis] if axis < len(ref.indices) else All()
        if isinstance(index, All):
            axes.append(TileAxis(axis, ZERO, extent, ""))
        elif isinstance(index, Span):
            axes.append(TileAxis(axis, index.start, index.length, index.axis))
    return Shaped(ref, buffer, tuple(axes))


@lru_cache(maxsize=1 << 13)
def address(tile: Shaped, offsets: tuple[Expr, ...], coordinates: frozenset[str] = frozenset()) -> Expr:
    """Return the offset in elements of one element: `offsets` count from the tile's start, one a tile axis.

    Axes named in `coordinates` are indexed by that name, which holds start plus offset.
    """
    starts = {axis.axis: axis for axis in tile.axes}
    steps = dict(zip((axis.axis for axis in tile.axes), offsets))
    buffer = tile.buffer
    order = buffer.order or tuple(range(len(buffer.shape)))
    total: Expr = ZERO
    for place, axis in enumerate(order):
        extent = buffer.shape[axis]
        if place == len(order) - 1 and place > 0:
            extent = Binary("+", extent, buffer.pad)
        index: Expr
        if axis in starts:
            named = starts[axis].name in coordinates
            index = Name(starts[axis].name) if named else Binary("+", starts[axis].start, steps[axis])
        else:
            given = tile.ref.indices[axis]
            assert not isinstance(given, Span | All)  # those are tile axes
            index = given
        if buffer.ring and axis == 0:
            index = Binary("%", index, buffer.shape[0])
        total = index if place == 0 else Binary("+", Binary("*", total, extent), index)
    return total


def guard_parts(guard: Guard | None) -> tuple[Expr, ...]:
    """Return what a guard asks, one condition each."""
    return () if guard is None else conjuncts(guard.condition)


def moves_by_one(expr: Expr, name: str) -> bool:
    """Whether an expression grows by exactly one with `name`: ``n``, ``p*32 + n``, ``n - 1``."""
    match expr:
        case Name(found):
            return found == name
        case Binary("+", left, right):
            one, other = (left, right) if name in names_in(left) else (right, left)
            return moves_by_one(one, name) and name not in names_in(other)
        case Binary("-", left, right):
            return moves_by_one(left, name) and name not in names_in(right)
        case _:
            return False


@lru_cache(maxsize=1 << 12)
def at_end(condition: Expr, axes: tuple[TileAxis, ...]) -> Expr | None:
    """Return the condition for the last element of a tile, which then holds for all of it; None where it may not.

    Only ``x < bound`` and ``x <= bound`` have such a form, x growing by one along one axis.
    """
    named = {axis.name: axis for axis in axes if axis.name}
    match condition:
        case Binary("<" | "<=" as op, left, right):
            moving = names_in(condition) & set(named)
            if len(moving) != 1 or moving & names_in(right):
                return None
            (name,) = moving
            if not moves_by_one(left, name):
                return None
            axis = named[name]
            behind = substitute(left, {name: Binary("+", axis.start, axis.length)})
            return Binary("<=", behind, right if op == "<" else Binary("+", right, Number(1)))
        case _:
            return None


def rest_behind(condition: Expr, name: str) -> Expr | None:
    """Return how many elements from coordinate `name` on satisfy a condition; None where it has no such form."""
    match condition:
        case Binary("<" | "<=" as op, left, right) if moves_by_one(left, name) and name not in names_in(right):
            return Binary("-", right if op == "<" else Binary("+", right, Number(1)), left)
        case _:
            return None
