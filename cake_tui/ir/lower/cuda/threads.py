"""A team's threads in CUDA C++: the thread's number and its coordinates in every spread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from cake_tui.ir.expr import Binary, Expr, Name, Number, Ref
from cake_tui.ir.lower.cuda.elements import dense
from cake_tui.ir.lower.cuda.frame import CudaFrame
from cake_tui.ir.lower.cuda.holds import Hold, Holds, Warps
from cake_tui.ir.lower.tiles import shaped
from cake_tui.ir.program import WARP, Buffer, Contract, Pick, Reduce, Statement, Threads
from cake_tui.ir.walk import walk_body

LANES_X = 8  # of a warp along the last axis, where both operands of a product are read in vectors


@contextmanager
def declare_threads(
    frame: CudaFrame, buffers: Iterable[Buffer], counter: str, body: tuple[Statement, ...]
) -> Iterator[None]:
    """Set the thread's number, from 0 in its team, and its coordinates; what nothing names goes again."""
    team, writer = frame.team, frame.writer
    frame.arranged = _arranged(frame, body)
    declared = [(team.counter, len(writer.lines))]
    writer.line(f"const int {team.counter} = {counter};")
    frame.declare(team.counter, Number(0), Number(team.threads))
    for buffer in buffers:
        if buffer.space != "register" or buffer.name not in frame.spreads.holds:
            continue
        holds = frame.spreads.holds[buffer.name]
        for axis, hold in enumerate(holds):
            if hold.threads > 1 and (hold.stride, hold.threads) not in frame.coordinates:
                name = _name(frame, hold, len(holds) - 1 - axis)
                frame.coordinates[hold.stride, hold.threads] = name
                if (hold.stride, hold.threads) in frame.arranged:
                    continue
                if hold.fragment:
                    declared.append((name, len(writer.lines)))
                    writer.line(f"const int {name} = {_of_fragment(frame, hold, frame.spreads.warps[buffer.name])};")
                    frame.declare(name, Number(0), Number(hold.extent))
                    continue
                if name != team.counter:
                    declared.append((name, len(writer.lines)))
                    writer.line(f"const int {name} = {_value(frame, hold, buffer)};")
                    frame.declare(name, Number(0), Number(hold.threads))
    declared += _arrange(frame)
    frame.keep_head()
    yield
    for name, line in reversed(declared):
        writer.drop_unused(name, line, line + 1)


def _arranged(frame: CudaFrame, body: tuple[Statement, ...]) -> tuple[tuple[int, int], ...]:
    """Return the two spreads' axes, as (stride, threads), whose threads a warp covers as a block of lanes.

    A register block whose operands are both read from shared memory in vectors: shared memory gives 128 bytes a time,
    and half a warp shares a read of 16 bytes a lane only where lanes meet in pairs.
    """
    statements = walk_body(body)
    if any(isinstance(one, Reduce | Pick) and one.scope == "warp" for one in statements):
        return ()
    for one in statements:
        if not isinstance(one, Contract) or one.op != "outer":
            continue
        holds = frame.spreads.holds.get(one.target.buffer, ())
        if len(holds) == 2 and _fits(frame, holds) and all(_vectors(frame, ref) for ref in (one.left, one.right)):
            keys = tuple((hold.stride, hold.threads) for hold in holds)
            return keys if _apart(frame, frozenset(keys)) else ()
    return ()


def _apart(frame: CudaFrame, keys: frozenset[tuple[int, int]]) -> bool:
    """Whether every buffer goes by these axes alone or by none of them: a mixture would hold elements twice."""
    for holds in frame.spreads.holds.values():
        mine = {(hold.stride, hold.threads) for hold in holds if hold.threads > 1}
        if mine & keys and not mine <= keys:
            return False
    return True


def _fits(frame: CudaFrame, holds: Holds) -> bool:
    rows, columns = holds
    across = min(LANES_X, columns.threads)
    whole = rows.threads * columns.threads == frame.team.threads and frame.team.threads % WARP == 0
    plain = columns.stride == 1 and rows.stride == columns.threads
    even = across in (2, 4, 8) and columns.threads % across == 0 and rows.threads % (WARP // across) == 0
    return whole and plain and even and min(rows.each, columns.each) > 1


def _vectors(frame: CudaFrame, ref: Ref) -> bool:
    """Whether an operand lies in shared memory, neighbours side by side."""
    tile = shaped(ref, frame.spreads.buffers)
    return tile.buffer.space == "shared" and len(tile.axes) == 1 and dense(tile, tile.axes)


def _arrange(frame: CudaFrame) -> list[tuple[str, int]]:
    """Set the coordinates of threads that are arranged in blocks of lanes; return names and lines."""
    if not frame.arranged:
        return []
    (_, rows), (_, columns) = frame.arranged
    ty, tx = (frame.coordinates[key] for key in frame.arranged)
    across = min(LANES_X, columns)
    down, counter, writer = WARP // across, frame.team.counter, frame.writer
    writer.line(f"// A warp covers {down} x {across} threads, neighbours in pairs: halves of it share their reads.")
    warp, lane = f"{counter} / {WARP}", f"{counter} % {WARP} / {2 * across} * 2 + {counter} % 2"
    side = columns // across
    row_warp, column_warp = (f"{warp} / {side}", f"{warp} % {side} * {across} + ") if side > 1 else (warp, "")
    lines = len(writer.lines)
    writer.line(f"const int {ty} = {row_warp} * {down} + {lane};")
    writer.line(f"const int {tx} = {column_warp}{counter} / 2 % {across};")
    frame.declare(ty, Number(0), Number(rows))
    frame.declare(tx, Number(0), Number(columns))
    return [(ty, lines), (tx, lines + 1)]


def _of_fragment(frame: CudaFrame, hold: Hold, warps: Warps) -> str:
    """Print the first row or column of the sums that a thread holds."""
    counter = frame.team.counter
    if hold.fragment == "row":
        return f"{counter} / {WARP} / {warps.across} * {16 * warps.rows} + {counter} % {WARP} / 4"
    return f"{counter} / {WARP} % {warps.across} * {8 * warps.columns} + {counter} % 4 * 2"


def _name(frame: CudaFrame, hold: Hold, from_last: int) -> str:
    if hold.stride == 1 and hold.threads == frame.team.threads:
        return frame.team.counter
    wanted = f"first_{hold.fragment}" if hold.fragment else {0: "tx", 1: "ty", 2: "tz"}.get(from_last, "tw")
    taken = {*frame.coordinates.values(), *frame.taken}
    name, number = wanted, 2
    while name in taken:
        name = f"{wanted}{number}"
        number += 1
    return name


def _value(frame: CudaFrame, hold: Hold, buffer: Buffer) -> str:
    counter: Expr = Name(frame.team.counter)
    stride, threads = _counts(frame, hold, buffer)
    text = frame.c(counter) if hold.stride == 1 else f"{frame.c(counter)} / {frame.c(stride, 6)}"
    if hold.stride * hold.threads < frame.team.threads:
        text += f" % {frame.c(threads, 6)}"
    return text


def _counts(frame: CudaFrame, hold: Hold, buffer: Buffer) -> tuple[Expr, Expr]:
    """Return stride and threads of a hold as the program names them."""
    assert isinstance(buffer.spread, Threads)  # only those have coordinates
    stride: Expr = Number(1)
    order = buffer.order or tuple(range(len(buffer.spread.threads)))
    for count in (buffer.spread.threads[axis] for axis in reversed(order)):
        if frame.proofs.number(stride) == hold.stride and frame.proofs.number(frame.tidy(count)) == hold.threads:
            return stride, count
        stride = count if stride == Number(1) else Binary("*", count, stride)
    return Number(hold.stride), Number(hold.threads)
