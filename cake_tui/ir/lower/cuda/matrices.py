"""Products by matrix instructions in CUDA C++: a warp reads operands as a whole and holds its sums by pairs."""

from __future__ import annotations

from cake_tui.ir.expr import Binary, Call, Expr, Name, Number
from cake_tui.ir.lower.cuda.elements import aligned, dense
from cake_tui.ir.lower.cuda.frame import CudaFrame
from cake_tui.ir.lower.cuda.holds import Warps
from cake_tui.ir.lower.cuda.values import memory_index
from cake_tui.ir.lower.cuda.walks import counters_of, plus, times
from cake_tui.ir.lower.tiles import address, shaped
from cake_tui.ir.program import WARP, Buffer, Contract, Copy, Fragment
from cake_tui.ir.refusal import refuse

ROWS, COLUMNS, DEPTH = 16, 8, 16  # of one instruction
VECTOR = 8  # elements of a row that a lane points to: 16 bytes
SHAPE = "m16n8k16"


def _part(frame: CudaFrame, buffer: Buffer) -> tuple[str, Warps]:
    """Return which operand a buffer is, and the warps that share the sums that it goes into."""
    name = buffer.spread.name if isinstance(buffer.spread, Fragment) else ""
    shared = frame.spreads.warps.get(buffer.name)
    part = name.removeprefix(f"{SHAPE}.")
    extents = [frame.number(extent, buffer.name) for extent in buffer.shape]
    if part not in ("a", "b") or shared is None or len(extents) != 2 or extents["ab".index(part) - 1] != DEPTH:
        needed = f"{SHAPE}, whole tiles of 16 x 8 a warp, 16 deep"
        raise refuse("lowering", buffer.name, f"a fragment {name}", needed, step="lower")
    return part, shared


def declare_operand(frame: CudaFrame, buffer: Buffer) -> None:
    """Declare a warp's part of an operand: pairs of elements in 32-bit registers."""
    part, shared = _part(frame, buffer)
    if buffer.dtype not in ("bf16", "f16") or buffer.init is not None:
        raise refuse("lowering", buffer.name, buffer.dtype, "bf16 or f16, not filled", step="lower")
    tiles, registers = (shared.rows, 4) if part == "a" else (shared.columns, 2)
    frame.writer.line(f"unsigned {buffer.name}[{tiles}][{registers}];")


def lower_operand(frame: CudaFrame, statement: Copy) -> None:
    """Lower a copy from shared memory into an operand: each lane points to a row of 16 bytes."""
    target, source = frame.buffers[statement.target.buffer], shaped(statement.source, frame.buffers)
    part, shared = _part(frame, target)
    plain = source.buffer.space == "shared" and source.buffer.dtype == target.dtype and len(source.axes) == 2
    if not plain or statement.where is not None or statement.target.indices or not dense(source, source.axes):
        needed = f"a tile of {target.dtype} in shared memory, in rows"
        raise refuse("lowering", source.ref.buffer, "an operand of an mma", needed, step="lower")
    if not aligned(frame, source, source.axes, VECTOR):
        raise refuse("lowering", source.ref.buffer, "rows that are not 16 bytes aligned", "a pad of 8", step="lower")
    thread = Name(frame.team.counter)
    warp: Expr = Call("floor", (Binary("/", thread, Number(WARP)),))
    (counter,) = counters_of(frame, 1)
    inner = frame.child()
    inner.declare(counter, Number(0), Number(shared.rows if part == "a" else shared.columns))
    lane = Binary("%", thread, Number(ROWS))
    if part == "a":
        first = frame.hoist("warp_row", times(_over(warp, shared.across), ROWS * shared.rows))
        right = times(_over(Binary("%", thread, Number(WARP)), ROWS), VECTOR)
        offsets = (plus(plus(first, times(Name(counter), ROWS)), lane), right)
        tiles = shared.rows
    else:
        across = Binary("%", warp, Number(shared.across)) if shared.across > 1 else Number(0)
        first = frame.hoist("warp_column", times(across, COLUMNS * shared.columns))
        offsets = (lane, plus(first, times(Name(counter), COLUMNS)))
        tiles = shared.columns
    index = memory_index(inner, source, address(source, offsets))
    frame.writer.pragma("unroll")
    with frame.writer.block(f"for (int {counter} = 0; {counter} < {tiles}; ++{counter})"):
        frame.writer.line(f"load_matrix_{part}({target.name}[{counter}], &{source.buffer.name}[{index}]);")


def _over(top: Expr, bottom: int) -> Expr:
    return top if bottom == 1 else Call("floor", (Binary("/", top, Number(bottom)),))


def lower_mma(frame: CudaFrame, statement: Contract) -> None:
    """Lower ``acc += mma(x, z)``: every tile of a warp."""
    target = frame.buffers[statement.target.buffer]
    left, right = frame.buffers[statement.left.buffer], frame.buffers[statement.right.buffer]
    shared = frame.spreads.warps.get(target.name)
    whole = not (statement.target.indices or statement.left.indices or statement.right.indices)
    same = left.dtype == right.dtype == statement.math and target.dtype == "f32"
    if shared is None or not whole or not same or statement.where is not None or statement.math not in ("bf16", "f16"):
        found = f"{statement.math} of {left.dtype} and {right.dtype}"
        raise refuse("lowering", "mma", found, "bf16 or f16 into f32, whole fragments m16n8k16", step="lower")
    for buffer, part in ((left, "a"), (right, "b")):
        if _part(frame, buffer)[0] != part:
            raise refuse("lowering", buffer.name, "another fragment", f"{SHAPE}.{part}", step="lower")
    i, j = counters_of(frame, 2)
    frame.writer.pragma("unroll")
    with frame.writer.block(f"for (int {i} = 0; {i} < {shared.rows}; ++{i})"):
        frame.writer.pragma("unroll")
        with frame.writer.block(f"for (int {j} = 0; {j} < {shared.columns}; ++{j})"):
            sums = ", ".join(
                f"{target.name}[2 * {i}{' + 1' * down}][2 * {j}{' + 1' * right_}]"
                for down in (0, 1)
                for right_ in (0, 1)
            )
            frame.writer.line(f"mma_{statement.math}({sums}, {left.name}[{i}], {right.name}[{j}]);")
