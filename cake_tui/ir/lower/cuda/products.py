"""Outer products into a register block: both fragments are read once, then every product of the two is added."""

from __future__ import annotations

from cake_tui.ir.expr import Binary, Expr, Number, names_in
from cake_tui.ir.lower.cuda.assignments import test_of
from cake_tui.ir.lower.cuda.elements import aligned, dense
from cake_tui.ir.lower.cuda.frame import CudaFrame
from cake_tui.ir.lower.cuda.holds import Hold
from cake_tui.ir.lower.cuda.types import CALCULATED, STORED
from cake_tui.ir.lower.cuda.values import Values
from cake_tui.ir.lower.cuda.walks import counters_of, walk_tile
from cake_tui.ir.lower.guards import sort_guard
from cake_tui.ir.lower.tiles import Shaped, TileAxis, shaped
from cake_tui.ir.program import DTYPE_BYTES, Contract
from cake_tui.ir.refusal import refuse

WIDEST = 16  # bytes of one load


def lower_outer(frame: CudaFrame, statement: Contract) -> None:
    """Lower ``acc += outer(x, y)``; an operand whose guard fails adds nothing."""
    target = shaped(statement.target, frame.buffers)
    left, right = shaped(statement.left, frame.buffers), shaped(statement.right, frame.buffers)
    sides = [[axis for axis in tile.axes if frame.number(axis.length, "tile") > 1] for tile in (left, right)]
    if target.buffer.space != "register" or len(target.axes) != 2 or max(len(side) for side in sides) > 1:
        raise refuse("lowering", statement.target.buffer, "these ranks", "a register tile and two rows", step="lower")
    asked = sort_guard(frame, statement.where, (*left.axes, *right.axes))
    if asked is None:
        return
    rows, columns = frame.holds(target.buffer)
    tests = [*asked.whole, *asked.elements]
    if rows.each == 1 == columns.each:
        _single(frame, statement, (target, left, right), (rows, columns), tests)
        return
    with frame.writer.scope():
        names = []
        for tile, hold, side in ((left, rows, "left"), (right, columns, "right")):
            mine = [condition for condition in tests if names_in(condition) & {axis.name for axis in tile.axes}]
            names.append(_operand(frame, tile, hold, side, mine))
        over = [condition for condition in tests if not names_in(condition) & _named(left, right)]
        if over:
            with frame.writer.block(f"if ({test_of(frame, over)})"):
                multiply(frame, statement.target.buffer, (rows, columns), names)
        else:
            multiply(frame, statement.target.buffer, (rows, columns), names)


def _named(*tiles: Shaped) -> frozenset[str]:
    return frozenset(axis.name for tile in tiles for axis in tile.axes if axis.name)


def _single(
    frame: CudaFrame,
    statement: Contract,
    tiles: tuple[Shaped, Shaped, Shaped],
    holds: tuple[Hold, Hold],
    tests: list[Expr],
) -> None:
    """One product a thread."""
    target, left, right = tiles
    axes = (_axis(frame, left, target.axes[0]), _axis(frame, right, target.axes[1]))
    with walk_tile(frame, axes, holds, once=False) as walk:
        values = Values(walk, axes, target.buffer.dtype)
        place = values.place(target)
        texts = []
        for at, tile in enumerate((left, right)):
            side = Values(walk, axes, target.buffer.dtype)
            side.axes = (axes[at],)
            side.walk = type(walk)(walk.frame, (walk.steps[at],), walk.coordinates)
            texts.append(side.value(tile.ref, 6))
        line = f"{place} += {texts[0]} * {texts[1]};"
        if tests:
            with walk.frame.writer.block(f"if ({test_of(walk.frame, tests)})"):
                walk.frame.writer.line(line)
        else:
            walk.frame.writer.line(line)


def _axis(frame: CudaFrame, tile: Shaped, own: TileAxis) -> TileAxis:
    """Return the axis of an operand that runs; the target's own where it is one element."""
    if len(tile.axes) == 1:
        return tile.axes[0]
    longer = [axis for axis in tile.axes if frame.number(axis.length, "tile") > 1]
    return longer[0] if longer else own


def _operand(frame: CudaFrame, tile: Shaped, hold: Hold, side: str, tests: list[Expr]) -> str:
    """Have an operand in registers: its own, or loaded into an array that is named here."""
    buffer = tile.buffer
    if buffer.space == "register":
        mine = frame.holds(buffer)
        if len(mine) != 1 or mine[0].key != hold.key:
            raise refuse("lowering", buffer.name, "elements of other threads", "the spread of the block", step="lower")
        return buffer.name
    (name,) = frame.fresh(side)
    declare_fragment(frame, tile, hold, name)
    load_fragment(frame, tile, hold, name, tests)
    return name


def declare_fragment(frame: CudaFrame, tile: Shaped, hold: Hold, name: str, steps: int = 1) -> None:
    """Declare the registers of a thread's part of an operand, of so many steps; `name` may have a first axis."""
    count = f"[{frame.c(hold.each_expr)}]" if hold.each > 1 else ""
    count += f"[{steps}]" if steps > 1 else ""
    frame.writer.line(f"{STORED[CALCULATED[tile.buffer.dtype]]} {name}{count};")


def load_fragment(frame: CudaFrame, tile: Shaped, hold: Hold, name: str, tests: list[Expr], steps: int = 1) -> None:
    """Load a thread's part of an operand, zero where its guard fails; of `steps` that lie side by side in memory."""
    buffer = tile.buffer
    axis = _axis(frame, tile, tile.axes[0])
    vector = 1 if steps > 1 else _width(frame, tile, hold, axis, tests)
    with walk_tile(frame, (axis,), (hold,), vector, once=False) as walk:
        values = Values(walk, (axis,), CALCULATED[buffer.dtype])
        element = f"[{walk.frame.c(walk.steps[0].element)}]" if hold.each > 1 else ""
        if steps > 1:
            walk.frame.writer.line(f"load_vector<{steps}>({name}{element}, {values.pointer(tile)});")
        elif vector > 1:
            walk.frame.writer.line(f"load_vector<{vector}>(&{name}{element}, {values.pointer(tile)});")
        else:
            text = values.value(tile.ref)
            text = f"{test_of(walk.frame, tests)} ? {text} : 0" if tests else text
            walk.frame.writer.line(f"{name}{element} = {text};")


def _width(frame: CudaFrame, tile: Shaped, hold: Hold, axis: TileAxis, tests: list[Expr]) -> int:
    """Return how many elements one load may move: as many as lie side by side for the thread and in memory."""
    if tests or CALCULATED[tile.buffer.dtype] != tile.buffer.dtype or not dense(tile, (axis,)):
        return 1
    vector = min(hold.group, WIDEST // DTYPE_BYTES[tile.buffer.dtype])
    while vector > 1 and (hold.group % vector or not aligned(frame, tile, (axis,), vector)):
        vector //= 2
    return vector


def multiply(
    frame: CudaFrame,
    target: str,
    holds: tuple[Hold, Hold],
    names: list[str],
    along: str = "",
    *,
    serpentine: bool = False,
) -> None:
    """Add every product of two fragments to the block; `along` is the index of left's step.

    In serpentine order each row begins with the column at which the one before ended, whose register the multiplier
    still holds: that wins where fragments wait in registers, and costs 3 % where each is multiplied as it is read.
    """
    rows, columns = holds
    i, j = frame.fresh(*counters_of(frame, 2))
    turns = serpentine and rows.each > 1 and columns.each > 1
    (column,) = frame.fresh("column") if turns else (j,)
    left, right = (f"[{i}]" if rows.each > 1 else ""), (f"[{column}]" if columns.each > 1 else "")
    heads = [
        f"for (int {counter} = 0; {counter} < {frame.c(hold.each_expr)}; ++{counter})"
        for hold, counter in zip(holds, (i, j))
        if hold.each > 1
    ]
    lines = [f"{target}{left}{right} += {names[0]}{left}{along} * {names[1]}{right};"]
    if turns:
        last = frame.c(Binary("-", columns.each_expr, Number(1)))
        lines.insert(0, f"const int {column} = {i} % 2 ? {last} - {j} : {j};")
    _nested(frame, heads, lines)


def _nested(frame: CudaFrame, heads: list[str], lines: list[str]) -> None:
    if not heads:
        for line in lines:
            frame.writer.line(line)
        return
    frame.writer.pragma("unroll")
    with frame.writer.block(heads[0]):
        _nested(frame, heads[1:], lines)
