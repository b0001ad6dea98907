"""Maps, copies and outer products in C: loops over a tile, a vector at a time, guarded only where nothing is proven."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import msgspec

from cake_tui.ir.expr import Binary, Expr, Name, Number, Ref, names_in, refs_in
from cake_tui.ir.lower.c.frame import CFrame
from cake_tui.ir.lower.c.values import Values, register_place
from cake_tui.ir.lower.frame import chunk
from cake_tui.ir.lower.guards import sort_guard
from cake_tui.ir.lower.tiles import Shaped, TileAxis, address, at_end, rest_behind, shaped
from cake_tui.ir.program import Assign, Contract, Copy
from cake_tui.ir.refusal import refuse


def whole_conditions(
    frame: CFrame, conditions: tuple[Expr, ...], axes: tuple[TileAxis, ...]
) -> tuple[Expr, ...] | None:
    """Return conditions under which no element needs its own test; None where one has no such form."""
    found = []
    for condition in conditions:
        end = at_end(condition, axes)
        if end is None:
            return None
        found.append(frame.tidy(end))
    return tuple(found)


def versioned(frame: CFrame, conditions: tuple[Expr, ...], emit: Callable[[CFrame], None]) -> None:
    """Emit a statement twice: where the conditions hold for the whole tile, and where they may not."""
    new = tuple(condition for condition in dict.fromkeys(conditions) if condition not in frame.undecided)
    new = tuple(condition for condition in new if not frame.proofs.surely(condition))
    if not new:
        emit(frame)
        return
    test = " && ".join(frame.c(condition, 3) for condition in new)
    with frame.writer.block(f"if ({test})"):
        emit(frame.knowing(new))
    frame.writer.otherwise()
    with frame.writer.block("} else"):
        emit(frame.doubting(new))


def lower_assign(frame: CFrame, statement: Assign) -> None:
    """Lower a map."""
    target = shaped(statement.target, frame.buffers)
    lanes = _lanes(frame, target, statement.value, statement.vector)
    _lower_map(frame, statement, target, lanes, _coordinates(frame, target, statement.value))


def _coordinates(frame: CFrame, target: Shaped, value: Expr) -> tuple[TileAxis, ...]:
    """Return the axes to loop over; one that the target leaves unnamed takes its name from a tile of the value."""
    axes = list(target.axes)
    for ref in refs_in(value):
        source = shaped(ref, frame.buffers).axes
        for back, axis in enumerate(reversed(source), start=1):
            if axis.name and back <= len(axes) and not axes[-back].name:
                axes[-back] = msgspec.structs.replace(axis, length=axes[-back].length)
    return tuple(axes)


def lower_copy(frame: CFrame, statement: Copy) -> None:
    """Lower a copy: a map whose value is another tile of the same extents."""
    if statement.kind != "copy":
        raise refuse("lowering", statement.kind, statement.kind, "copy: c has nothing asynchronous", step="lower")
    source, target = shaped(statement.source, frame.buffers), shaped(statement.target, frame.buffers)
    if len(source.axes) != len(target.axes):
        raise refuse("lowering", statement.source.buffer, "tiles of different ranks", "equal extents", step="lower")
    # Coordinates are named by the source; the target's elements carry them over.
    axes = tuple(
        msgspec.structs.replace(axis, name=axis.name or other.name) for axis, other in zip(source.axes, target.axes)
    )
    lanes = _lanes(frame, target, statement.source, statement.vector)
    assign = Assign(statement.target, statement.source, "=", statement.vector, statement.where)
    _lower_map(frame, assign, target, lanes, axes)


def _lanes(frame: CFrame, target: Shaped, value: Expr, vector: Expr | None) -> tuple[int, Expr]:
    """Return the elements of one step: a register buffer's lanes decide, else the statement's vector."""
    tiles = [shaped(ref, frame.buffers) for ref in refs_in(value)]
    for tile in (target, *tiles):
        if tile.lanes is not None and tile.axes:
            return frame.number(tile.lanes, tile.buffer.name), tile.lanes
    if vector is None or not target.axes:
        return 1, Number(1)
    lanes = frame.number(vector, "vector")
    extent = frame.proofs.number(frame.tidy(target.axes[-1].length))
    memory = [tile for tile in (target, *tiles) if tile.axes]
    if extent is None or extent % lanes or not all(tile.contiguous for tile in memory):
        return 1, Number(1)
    return lanes, vector


def _lower_map(
    frame: CFrame,
    statement: Assign,
    target: Shaped,
    width: tuple[int, Expr],
    coordinates: tuple[TileAxis, ...],
) -> None:
    asked = sort_guard(frame, statement.where, coordinates)
    otherwise = None if statement.where is None else statement.where.otherwise
    if asked is None:
        if otherwise is not None:
            _emit_map(frame, msgspec.structs.replace(statement, value=otherwise), target, coordinates, width, ())
        return

    def body(inner: CFrame) -> None:
        left = sort_guard(inner, statement.where, coordinates)
        _emit_map(inner, statement, target, coordinates, width, left.elements if left else ())

    def choose(inner: CFrame) -> None:
        conditions = whole_conditions(inner, asked.elements, coordinates) if width[0] > 1 else None
        if conditions:
            versioned(inner, conditions, body)
        else:
            body(inner)

    if not asked.whole:
        choose(frame)
        return
    with frame.writer.block(f"if ({' && '.join(frame.c(condition, 3) for condition in asked.whole)})"):
        choose(frame.knowing(asked.whole))
    if otherwise is not None:
        frame.writer.otherwise()
        with frame.writer.block("} else"):
            _emit_map(frame, msgspec.structs.replace(statement, value=otherwise), target, coordinates, width, ())


def _emit_map(
    frame: CFrame,
    statement: Assign,
    target: Shaped,
    axes: tuple[TileAxis, ...],
    width: tuple[int, Expr],
    elements: tuple[Expr, ...],
) -> None:
    """Emit the loops over a tile and the statement inside; `elements` are conditions to test for each one."""
    lanes = width[0]
    unrolled = target.buffer.space == "register" or any(
        frame.buffers[ref.buffer].space == "register" and frame.buffers[ref.buffer].shape
        for ref in refs_in(statement.value)
    )
    with loops(frame, axes, width, unrolled=unrolled) as (inner, offsets, coordinates):
        vector_axis = axes[-1].name if axes and lanes > 1 else ""
        values = Values(inner, target.buffer.dtype, lanes, offsets, vector_axis, coordinates)
        tests = []
        for condition in elements:
            if vector_axis and vector_axis in names_in(condition):
                rest = rest_behind(condition, vector_axis)
                if rest is None or values.count is not None:
                    raise refuse("lowering", "where", inner.c(condition), f"{vector_axis} < bound, once", step="lower")
                values.count = rest
            else:
                tests.append(condition)
        _emit_element(inner, statement, target, values, tests)


def _emit_element(inner: CFrame, statement: Assign, target: Shaped, values: Values, tests: list[Expr]) -> None:
    otherwise = None if statement.where is None else statement.where.otherwise
    test = " && ".join(inner.c(condition, 3) for condition in tests)
    text = values.value(statement.value)
    if otherwise is not None and (tests or values.count is not None):
        other = values.scalar(otherwise)
        # A partial load of one buffer already has zeros behind its last element.
        if values.count is not None and not (isinstance(statement.value, Ref) and otherwise == Number(0)):
            first = inner.needs.call("first", values.dtype, values.lanes)
            text = f"{first}({text}, {inner.c(values.count)}, {other})"
        text = f"{test} ? {text} : {values.splat(other, False)}" if test else text
        test = ""
    partial = None if otherwise is not None else values.count
    if test:
        with inner.writer.block(f"if ({test})"):
            inner.writer.line(_store(inner, statement, target, values, text, partial))
    else:
        inner.writer.line(_store(inner, statement, target, values, text, partial))


def _store(inner: CFrame, statement: Assign, target: Shaped, values: Values, text: str, partial: Expr | None) -> str:
    if target.buffer.space == "register":
        return f"{register_place(inner, target, values.offsets, values.lanes)} {statement.op} {text};"
    place = f"{target.ref.buffer}[{inner.c(address(target, values.offsets, values.coordinates))}]"
    if values.lanes == 1:
        return f"{place} {statement.op} {text};"
    if statement.op == "+=":
        text = f"{values.load(f'&{place}')} + {text}"
    if partial is not None:
        stem = inner.needs.call("store_part", values.dtype, values.lanes)
        return f"{stem}(&{place}, {text}, {inner.c(partial)});"
    return f"{inner.needs.call('store', values.dtype, values.lanes)}(&{place}, {text});"


@contextmanager
def loops(
    frame: CFrame, axes: tuple[TileAxis, ...], width: tuple[int, Expr], *, unrolled: bool, letters: str = "ijlpq"
) -> Iterator[tuple[CFrame, tuple[Expr, ...], frozenset[str]]]:
    """Open one loop a tile axis, the last one a vector at a time.

    Gives the frame inside, the offset along each axis, and the coordinates that have a name there.
    """
    lanes, lanes_expr = width
    inner = frame.child()
    offsets: list[Expr] = []
    declared: list[tuple[str, int, int]] = []
    with ExitStack() as stack:
        for axis, variable in zip(axes, frame.fresh(*letters)):
            step = lanes if len(offsets) == len(axes) - 1 else 1
            turns = Binary("/", axis.length, lanes_expr) if step > 1 else axis.length
            count = turn_count(frame, turns, axis.length, step)
            if unrolled and (number := frame.number(axis.length, "tile") // step) > 1:
                frame.writer.pragma(f"GCC unroll {number}")
            stack.enter_context(frame.writer.block(f"for (int {variable} = 0; {variable} < {count}; {variable}++)"))
            offset = chunk(variable, step, lanes_expr)
            inner.visible.add(variable)
            inner.replaced.pop(variable, None)
            if axis.name:
                first = len(frame.writer.lines)
                frame.writer.line(f"const long {axis.name} = {inner.c(Binary('+', axis.start, offset))};")
                declared.append((axis.name, first, len(frame.writer.lines)))
                inner.declare(axis.name, axis.start, Binary("+", axis.start, axis.length))
            offsets.append(offset)
        yield inner, tuple(offsets), frozenset(axis.name for axis in axes if axis.name)
        for name, first, last in reversed(declared):
            frame.writer.drop_unused(name, first, last)


def turn_count(frame: CFrame, turns: Expr, length: Expr, step: int) -> str:
    """Print how often a tile loop runs, by name where a constant of the program says it."""
    if step > 1 and type(length) is Name and frame.proofs.number(frame.tidy(length)) is not None:
        value = next((const.value for const in frame.program.consts if const.name == length.name), None)
        match value:
            case Binary("*", one, Name() as lanes) if frame.proofs.number(lanes) == step:
                return frame.c(one)
    return frame.c(turns)


def lower_outer(frame: CFrame, statement: Contract) -> None:
    """Lower ``acc += outer(x, y)``: the row's vectors first, then one broadcast a row of the block."""
    if statement.op != "outer":
        raise refuse("lowering", statement.op, statement.op, "outer: c has no matrix instructions here", step="lower")
    target = shaped(statement.target, frame.buffers)
    left, right = shaped(statement.left, frame.buffers), shaped(statement.right, frame.buffers)
    if target.buffer.space != "register" or len(target.axes) != 2 or len(left.axes) != 1 or len(right.axes) != 1:
        raise refuse("lowering", statement.target.buffer, "these ranks", "a register tile and two rows", step="lower")
    asked = sort_guard(frame, statement.where, (*left.axes, *right.axes))
    if asked is None:
        return
    if asked.whole:
        with frame.writer.block(f"if ({' && '.join(frame.c(condition, 3) for condition in asked.whole)})"):
            _emit_outer(frame.knowing(asked.whole), statement, (target, left, right), asked.elements)
    else:
        _emit_outer(frame, statement, (target, left, right), asked.elements)


def _emit_outer(
    frame: CFrame, statement: Contract, tiles: tuple[Shaped, Shaped, Shaped], elements: tuple[Expr, ...]
) -> None:
    target, left, right = tiles
    dtype = target.buffer.dtype
    lanes = 1 if target.lanes is None else frame.number(target.lanes, "lanes")
    lanes_expr = target.lanes if target.lanes is not None else target.axes[1].length
    columns = target.axes[1]
    operand, element = frame.fresh("right", "left")
    number = frame.number(columns.length, "tile") // lanes
    count = turn_count(
        frame, Binary("/", columns.length, lanes_expr) if lanes > 1 else columns.length, columns.length, lanes
    )
    frame.writer.line(f"{frame.needs.type(dtype, lanes)} {operand}[{count}];")
    _fill_row(frame, statement, right, operand, (dtype, lanes, lanes_expr), elements)
    with loops(frame, left.axes, (1, lanes_expr), unrolled=True) as (inner, offsets, coordinates):
        values = Values(inner, dtype, 1, offsets, "", coordinates)
        text = _guarded(inner, values, statement.left, [c for c in elements if _about(c, left)])
        inner.writer.line(f"const {frame.needs.type(dtype, 1)} {element} = {text};")
        (j,) = frame.fresh("j")
        if number > 1:
            frame.writer.pragma(f"GCC unroll {number}")
        with frame.writer.block(f"for (int {j} = 0; {j} < {count}; {j}++)"):
            place = register_place(inner, target, (*offsets, chunk(j, lanes, lanes_expr)), lanes)
            frame.writer.line(f"{place} += {element} * {operand}[{j}];")


def _fill_row(
    frame: CFrame,
    statement: Contract,
    right: Shaped,
    operand: str,
    width: tuple[str, int, Expr],
    elements: tuple[Expr, ...],
) -> None:
    """Load the row of the right operand into registers."""
    dtype, lanes, lanes_expr = width
    with loops(frame, right.axes, (lanes, lanes_expr), unrolled=True, letters="j") as (inner, offsets, coordinates):
        axis = right.axes[0].name
        values = Values(inner, dtype, lanes, offsets, axis if lanes > 1 else "", coordinates)
        tests = [condition for condition in elements if _about(condition, right)]
        if lanes > 1:
            for condition in tests:
                values.count = rest_behind(condition, axis)
                if values.count is None or len(tests) > 1:
                    raise refuse("lowering", "where", inner.c(condition), f"{axis} < bound, once", step="lower")
            tests = []
        text = _guarded(inner, values, statement.right, tests)
        (variable,) = frame.fresh("j")
        inner.writer.line(f"{operand}[{variable}] = {text};")


def _about(condition: Expr, tile: Shaped) -> bool:
    return bool(names_in(condition) & {axis.name for axis in tile.axes if axis.name})


def _guarded(inner: CFrame, values: Values, ref: Ref, tests: list[Expr]) -> str:
    """Print an operand, zero where its guard fails: what a sum of products may add."""
    text = values.value(ref)
    if not tests:
        return text
    zero = values.splat("0", False)
    return f"{' && '.join(inner.c(condition, 3) for condition in tests)} ? {text} : {zero}"
