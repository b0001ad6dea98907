"""Maps, copies and atomics in CUDA C++: a tile's elements, vectors of them where they lie side by side."""

from __future__ import annotations

import msgspec

from cake_tui.ir.expr import All, Binary, Call, Expr, Name, Number, Ref, Span, names_in, refs_in, show_ref, substitute
from cake_tui.ir.lower.cuda.assignments import Map, emit_element, emit_vector, moves
from cake_tui.ir.lower.cuda.frame import CudaFrame
from cake_tui.ir.lower.cuda.holds import Hold
from cake_tui.ir.lower.cuda.types import CALCULATED, STORED, narrowed
from cake_tui.ir.lower.cuda.values import Values
from cake_tui.ir.lower.cuda.walks import plus, walk_tile
from cake_tui.ir.lower.guards import Asked, sort_guard
from cake_tui.ir.lower.tiles import Shaped, TileAxis, address, guard_parts, moves_by_one, rest_behind, shaped
from cake_tui.ir.program import DTYPE_BYTES, Assign, Atomic, Convert, Copy, Split
from cake_tui.ir.refusal import refuse

WIDEST = 16  # bytes of one load or store


def lower_assign(frame: CudaFrame, statement: Assign) -> None:
    """Lower a map."""
    made = Map(statement.target, statement.value, statement.op, statement.where, statement.vector)
    lower_map(frame, made, shaped(statement.target, frame.buffers).axes)


def lower_copy(frame: CudaFrame, statement: Copy) -> None:
    """Lower a copy: a map whose value is another tile of the same extents."""
    made = Map(statement.target, statement.source, "=", statement.where, statement.vector)
    lower_map(frame, made, copy_axes(frame, statement))


def lower_convert(frame: CudaFrame, statement: Convert) -> None:
    """Lower a change of dtype; threads keep the elements that they have."""
    source, target = frame.buffers[statement.source.buffer], frame.buffers[statement.target.buffer]
    same = source.space == target.space == "register" and [hold.key for hold in frame.holds(source)] == [
        hold.key for hold in frame.holds(target)
    ]
    if not same or statement.source.indices or statement.target.indices:
        found = f"{source.name} and {target.name} are spread differently"
        raise refuse("lowering", "convert", found, "a copy to shared memory, a barrier and a copy back", step="lower")
    value = _of_type(statement.source, source.dtype, target.dtype)
    lower_map(frame, Map(statement.target, value, "=", None), shaped(statement.target, frame.buffers).axes)


def _of_type(ref: Ref, dtype: str, wanted: str) -> Expr:
    """Return an element in the type that another one is calculated in."""
    return ref if CALCULATED[dtype] == CALCULATED[wanted] else Call(CALCULATED[wanted], (ref,))


def lower_split(frame: CudaFrame, statement: Split) -> None:
    """Lower a split: each part is what the parts before it leave, rounded."""
    refs = (statement.source, *statement.parts)
    buffers = [frame.buffers[ref.buffer] for ref in refs]
    if statement.where is not None or any(buffer.space != "register" for buffer in buffers):
        raise refuse("lowering", "split", show_ref(statement.source), "whole register tiles", step="lower")
    axes = shaped(statement.source, frame.buffers).axes
    holds = holds_of(frame, axes, refs)
    kind = CALCULATED[buffers[0].dtype]
    if any(CALCULATED[buffer.dtype] != kind for buffer in buffers):
        raise refuse("lowering", "split", "parts of another kind", f"parts calculated in {kind}", step="lower")
    with walk_tile(frame, axes, holds, once=False) as walk:
        values = Values(walk, axes, kind)
        (rest,) = frame.fresh("rest")
        frame.writer.line(f"{STORED[kind]} {rest} = {values.value(statement.source)};")
        for part, buffer in zip(statement.parts, buffers[1:]):
            place = values.place(shaped(part, frame.buffers))
            frame.writer.line(f"{place} = {narrowed(buffer.dtype, rest)};")
            if part is not statement.parts[-1]:
                frame.writer.line(f"{rest} -= {values.value(part)};")


def copy_axes(frame: CudaFrame, statement: Copy) -> tuple[TileAxis, ...]:
    """Return the axes of a copy's walk: the target's extents, coordinates named by either side."""
    source, target = shaped(statement.source, frame.buffers), shaped(statement.target, frame.buffers)
    if len(source.axes) != len(target.axes):
        raise refuse("lowering", statement.source.buffer, "tiles of different ranks", "equal extents", step="lower")
    return tuple(
        msgspec.structs.replace(axis, name=other.name, start=other.start) if other.name else axis
        for axis, other in zip(target.axes, source.axes)
    )


def lower_atomic(frame: CudaFrame, statement: Atomic) -> None:
    """Lower an atomic map: each element once, by the thread that has it."""
    made = Map(statement.target, statement.value, f"atomic_{statement.operator}", statement.where)
    lower_map(frame, made, shaped(statement.target, frame.buffers).axes)


def lower_map(frame: CudaFrame, statement: Map, axes: tuple[TileAxis, ...]) -> None:
    """Lower a statement element by element, or a vector at a time where that is legal."""
    target = shaped(statement.target, frame.buffers)
    axes = _coordinates(frame, axes, statement.value)
    asked = sort_guard(frame, statement.where, axes)
    if asked is None:
        if statement.otherwise is None:
            return
        statement = msgspec.structs.replace(statement, value=statement.otherwise, where=None)
        asked = Asked((), ())
    holds = holds_of(frame, axes, (statement.target, *refs_in(statement.value)))
    vector = vector_of(frame, statement, axes, holds)
    memory = target.buffer.space != "register"
    expr = statement.vector if vector > 1 and _is(frame, statement.vector, vector) else Number(vector)
    assert expr is not None  # `_is` looked
    with walk_tile(frame, axes, holds, vector, expr, once=memory, about=statement.target.buffer) as walk:
        values = Values(walk, axes, target.buffer.dtype)
        values.vectors = vectors_of(frame, statement, axes, vector) if vector > 1 else frozenset()
        tests = [*asked.whole, *asked.elements]
        if vector == 1:
            emit_element(values, statement, target, tests)
        else:
            emit_vector(values, statement, target, tests, (vector, frame.c(expr)))


def _is(frame: CudaFrame, expr: Expr | None, number: int) -> bool:
    return expr is not None and frame.proofs.number(frame.tidy(expr)) == number


def _coordinates(frame: CudaFrame, axes: tuple[TileAxis, ...], value: Expr) -> tuple[TileAxis, ...]:
    """Name the axes that the target leaves unnamed as a tile of the value names them."""
    named = list(axes)
    for ref in refs_in(value):
        for back, axis in enumerate(reversed(shaped(ref, frame.buffers).axes), start=1):
            if axis.name and back <= len(named) and not named[-back].name:
                named[-back] = msgspec.structs.replace(named[-back], name=axis.name, start=axis.start)
    return tuple(named)


def holds_of(frame: CudaFrame, axes: tuple[TileAxis, ...], refs: tuple[Ref, ...]) -> list[Hold | None]:
    """Return who holds the elements along each axis of a walk: register tiles aligned at the last axes say it."""
    found: list[Hold | None] = [None] * len(axes)

    def note(place: int, hold: Hold, ref: Ref) -> None:
        known = found[place]
        if known is None or (known.threads == 1 and hold.extent == known.extent):
            found[place] = hold
        elif hold.threads > 1 and hold.key != known.key:
            raise refuse(
                "lowering", ref.buffer, "elements that other threads hold", "tiles that are spread alike", step="lower"
            )

    for ref in refs:
        tile = shaped(ref, frame.buffers)
        if tile.buffer.space != "register" or not tile.buffer.shape:
            continue
        holds = frame.holds(tile.buffer)
        if len(tile.axes) > len(axes):
            raise refuse("lowering", ref.buffer, f"{len(tile.axes)} axes", f"{len(axes)} at most", step="lower")
        for back, axis in enumerate(reversed(tile.axes), start=1):
            hold = holds[axis.axis]
            whole = frame.proofs.number(frame.tidy(axis.length)) == hold.extent
            if not whole and hold.threads > 1:
                raise refuse("lowering", ref.buffer, "a part of a spread tile", "all of it", step="lower")
            if whole or hold.threads > 1:
                note(len(axes) - back, hold, ref)
        for place, index in enumerate(ref.indices):
            if isinstance(index, Span | All) or holds[place].threads == 1:
                continue
            for at, own in enumerate(axes):
                if own.name and own.name in names_in(index):
                    note(at, holds[place], ref)
    return found


def vector_of(frame: CudaFrame, statement: Map, axes: tuple[TileAxis, ...], holds: list[Hold | None]) -> int:
    """Return how many elements of the last axis move together: the statement's vector, or less where it must."""
    if statement.vector is None or not axes or statement.op.startswith("atomic"):
        return 1
    asked = frame.number(statement.vector, "vector")
    extent = frame.number(axes[-1].length, "tile")
    last = holds[-1]
    name = axes[-1].name
    about = [condition for condition in guard_parts(statement.where) if name and name in names_in(condition)]
    if any(rest_behind(condition, name) is None for condition in about):
        return 1
    for vector in (asked, *(half for half in (8, 4, 2) if half < asked)):
        if extent % vector or (last is not None and last.group % vector):
            continue
        if vectors_of(frame, statement, axes, vector):
            return vector
    return 1


def vectors_of(frame: CudaFrame, statement: Map, axes: tuple[TileAxis, ...], vector: int) -> frozenset[Ref]:
    """Return the references to memory that move in whole vectors; the others move element by element."""
    refs = (statement.target, *refs_in(statement.value))
    return frozenset(
        ref
        for ref in refs
        if frame.buffers[ref.buffer].space != "register"
        and moves(shaped(ref, frame.buffers), axes)
        and fits(frame, ref, axes, vector)
    )


def fits(frame: CudaFrame, ref: Ref, axes: tuple[TileAxis, ...], vector: int) -> bool:
    """Whether a reference moves in whole aligned vectors along the last axis, or does not move with it at all."""
    tile = shaped(ref, frame.buffers)
    if tile.buffer.space == "register" or not moves(tile, axes):
        return True
    size = vector * DTYPE_BYTES[tile.buffer.dtype]
    return size <= WIDEST and dense(tile, axes) and aligned(frame, tile, axes, vector)


def dense(tile: Shaped, axes: tuple[TileAxis, ...]) -> bool:
    """Whether neighbours along the walk's last axis are neighbours in memory."""
    order = tile.buffer.order or tuple(range(len(tile.buffer.shape)))
    inner = order[-1]
    if tile.axes:
        return tile.axes[-1].axis == inner
    name = axes[-1].name
    index = tile.ref.indices[inner]
    if isinstance(index, Span | All) or not moves_by_one(index, name):
        return False
    return not any(name in names_in(other) for at, other in enumerate(tile.ref.indices) if at != inner)


def aligned(frame: CudaFrame, tile: Shaped, axes: tuple[TileAxis, ...], vector: int) -> bool:
    """Whether vectors that begin at multiples of `vector` along the last axis are aligned in memory."""
    size = vector * DTYPE_BYTES[tile.buffer.dtype]
    if alignment(tile) % size:
        return False
    begin = address(tile, tuple(Number(0) for _ in tile.axes))
    for axis in axes:  # the walk's own coordinates are its start plus a multiple along the last axis, any number before
        if axis.name and axis.name in names_in(begin):
            offset = Binary("*", Name("#vector"), Number(vector)) if axis is axes[-1] else Name("#row")
            begin = substitute(begin, {axis.name: plus(axis.start, offset)})
    inner = frame.child()
    inner.declare("#vector", Number(0), Number(1 << 20))
    inner.declare("#row", Number(0), Number(1 << 20))
    if not _multiple(inner, begin, vector):
        return False
    order = tile.buffer.order or tuple(range(len(tile.buffer.shape)))
    if len(order) == 1:
        return True
    pitch = Binary("+", tile.buffer.shape[order[-1]], tile.buffer.pad)
    return inner.divides(vector, pitch)


def _multiple(frame: CudaFrame, expr: Expr, divisor: int) -> bool:
    """Whether an expression is a multiple of a number, term by term where it is no affine form."""
    if frame.divides(divisor, expr):
        return True
    match expr:
        case Binary("+" | "-", left, right):
            return _multiple(frame, left, divisor) and _multiple(frame, right, divisor)
        case Binary("*", left, right):
            return _multiple(frame, left, divisor) or _multiple(frame, right, divisor)
        case _:
            return False


def alignment(tile: Shaped) -> int:
    """Return the bytes that a buffer's first element is aligned to."""
    return tile.buffer.align or {"shared": 16, "workspace": 64}.get(tile.buffer.space, DTYPE_BYTES[tile.buffer.dtype])
