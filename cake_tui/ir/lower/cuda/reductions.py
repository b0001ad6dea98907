"""Reductions and picks in CUDA C++: a thread's own elements first, then lanes of a warp, warps of a block, clusters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import msgspec

from cake_tui.ir.expr import Expr, Name, Number, Ref, show_ref
from cake_tui.ir.lower.cuda.frame import CudaFrame
from cake_tui.ir.lower.cuda.holds import Hold
from cake_tui.ir.lower.cuda.types import CALCULATED, STORED
from cake_tui.ir.lower.cuda.values import memory_index
from cake_tui.ir.lower.cuda.walks import counters_of, held_offset, plus
from cake_tui.ir.lower.tiles import address, shaped
from cake_tui.ir.program import WARP, Pick, Reduce, Scope
from cake_tui.ir.refusal import refuse

_IDENTITY = {"add": "0", "mul": "1", "max": "-infinity()", "min": "infinity()"}
_OPERATORS = {"add": "Add", "mul": "Multiply", "max": "Maximum", "min": "Minimum"}
_ORDERS = {"argmin": "Least", "argmax": "Greatest"}


class Own(msgspec.Struct, frozen=True):
    """A place in the loops over what is left of a tile: subscripts of a thread's registers, by axis of the source."""

    subscripts: dict[int, str]

    def of(self, name: str, axes: tuple[int, ...], more: dict[int, str] | None = None) -> str:
        """Print an element of a register buffer whose axes are these of the source."""
        found = {**self.subscripts, **(more or {})}
        return name + "".join(found.get(axis, "") for axis in axes)


def lower_reduce(frame: CudaFrame, statement: Reduce) -> None:
    """Lower a reduction; the result is had by all threads that took part."""
    source = frame.buffers[statement.source.buffer]
    if source.space != "register":
        _reduce_memory(frame, statement)
        return
    holds, axis = _folded(frame, statement.source, statement.axis)
    targets = _targets(frame, statement.target, holds, axis)
    kind = CALCULATED[source.dtype]
    with frame.writer.scope(), _left(frame, holds, axis) as own:
        place = own.of(statement.target.buffer, targets)
        axes = tuple(range(len(holds)))
        if holds[axis].each == 1:
            part = own.of(source.name, axes)
        else:
            (part,) = frame.fresh("part")
            frame.writer.line(f"{STORED[kind]} {part} = {own.of(source.name, axes, {axis: '[0]'})};")
            (counter,) = frame.fresh("e")
            frame.writer.pragma("unroll")
            with frame.writer.block(
                f"for (int {counter} = 1; {counter} < {frame.c(holds[axis].each_expr)}; ++{counter})"
            ):
                element = own.of(source.name, axes, {axis: f"[{counter}]"})
                frame.writer.line(_combined(statement.operator, kind, part, element))
        total = _across(frame, statement.operator, part, holds[axis], (statement.scope, statement.scratch))
        if statement.carry:
            frame.writer.line(_combined(statement.operator, kind, place, total))
        else:
            frame.writer.line(f"{place} = {total};")


def lower_pick(frame: CudaFrame, statement: Pick) -> None:
    """Lower argmin, argmax or topk: of equal values the one with the lower index."""
    source = frame.buffers[statement.source.buffer]
    if source.space != "register" or CALCULATED[source.dtype] != source.dtype:
        raise refuse("lowering", show_ref(statement.source), source.dtype, "f32 in registers", step="lower")
    if statement.op == "topk":
        _top(frame, statement)
        return
    holds, axis = _folded(frame, statement.source, statement.axis)
    values, indices = (_targets(frame, ref, holds, axis) for ref in (statement.values, statement.indices))
    order = _ORDERS[statement.op]
    first = statement.first
    axes = tuple(range(len(holds)))
    hold = holds[axis]
    with frame.writer.scope(), _left(frame, holds, axis) as own:
        best, place = own.of(statement.values.buffer, values), own.of(statement.indices.buffer, indices)
        if hold.extent == 1 and statement.carry:
            frame.writer.line(f"take<{order}>({best}, {place}, {own.of(source.name, axes)}, {frame.c(first)});")
            return
        value, index = frame.fresh("value", "index")
        at = own.of(source.name, axes, {axis: "[0]"} if hold.each > 1 else None)
        frame.writer.line(f"{STORED[source.dtype]} {value} = {at};")
        frame.writer.line(f"int {index} = {frame.c(plus(first, held_offset(frame, hold, Number(0), 1)))};")
        if hold.each > 1:
            (counter,) = frame.fresh("e")
            inner = frame.child()
            inner.declare(counter, Number(0), Number(hold.each))
            frame.writer.pragma("unroll")
            with frame.writer.block(f"for (int {counter} = 1; {counter} < {frame.c(hold.each_expr)}; ++{counter})"):
                element = own.of(source.name, axes, {axis: f"[{counter}]"})
                where = inner.c(plus(first, held_offset(inner, hold, Name(counter), 1)))
                frame.writer.line(f"take<{order}>({value}, {index}, {element}, {where});")
        scope = statement.scope
        if hold.threads > 1 and scope == "warp":
            frame.writer.line(f"warp_pick<{order}, {_lanes(hold, statement.source)}>({value}, {index});")
        elif scope == "block":
            warps = _warps(frame, hold, statement.scratch)
            frame.writer.line(f"block_pick<{order}, {warps}>({value}, {index}, {statement.scratch});")
        elif hold.threads > 1 or scope not in ("thread", "warp"):
            raise refuse("lowering", statement.op, f"within {scope}", "within warp or block", step="lower")
        if statement.carry:
            frame.writer.line(f"take<{order}>({best}, {place}, {value}, {index});")
        else:
            frame.writer.line(f"{best} = {value};")
            frame.writer.line(f"{place} = {index};")


def _top(frame: CudaFrame, statement: Pick) -> None:
    """The greatest pairs in order, the same list in every thread: each lane's candidates are put in their place."""
    holds, axis = _folded(frame, statement.source, statement.axis)
    values, indices = frame.buffers[statement.values.buffer], frame.buffers[statement.indices.buffer]
    plain = all(len(frame.holds(one)) == 1 and frame.holds(one)[0].threads == 1 for one in (values, indices))
    count = frame.number(statement.count, "topk")
    if len(holds) != 1 or not plain or frame.holds(values)[0].each != count or count == 1:
        raise refuse("lowering", "topk", "these tiles", "one axis into whole lists of 2 and more", step="lower")
    hold = holds[axis]
    lanes = hold.threads if statement.scope == "warp" else 1
    if hold.threads > 1 and (statement.scope != "warp" or hold.stride * hold.threads > WARP):
        raise refuse("lowering", "topk", f"within {statement.scope}", "a warp's own elements", step="lower")
    source = statement.source.buffer
    with ExitStack() as stack:
        inner = frame.child()
        if not statement.carry:
            stack.enter_context(frame.writer.scope())
            frame.writer.pragma("unroll")
            with frame.writer.block(f"for (int place = 0; place < {frame.c(statement.count)}; ++place)"):
                frame.writer.line(f"{values.name}[place] = -infinity();")
                frame.writer.line(f"{indices.name}[place] = 0;")
        element: Expr = Number(0)
        at = source
        if hold.each > 1:
            (counter,) = frame.fresh("e")
            frame.writer.pragma("unroll")
            head = f"for (int {counter} = 0; {counter} < {frame.c(hold.each_expr)}; ++{counter})"
            stack.enter_context(frame.writer.block(head))
            inner.declare(counter, Number(0), Number(hold.each))
            element, at = Name(counter), f"{source}[{counter}]"
        if lanes > 1:
            (lane,) = frame.fresh("from")
            stack.enter_context(frame.writer.block(f"for (int {lane} = 0; {lane} < {lanes}; ++{lane})"))
            inner.declare(lane, Number(0), Number(lanes))
            inner.coordinates = {**inner.coordinates, (hold.stride, hold.threads): lane}
            there = lane if hold.stride == 1 else f"{lane} * {hold.stride}"
            at = f"__shfl_sync(~0u, {at}, {there})"
        where = inner.c(plus(statement.first, held_offset(inner, hold, element, 1)))
        frame.writer.line(f"put_in_order({values.name}, {indices.name}, {at}, {where});")


def _folded(frame: CudaFrame, source: Ref, axis: int) -> tuple[tuple[Hold, ...], int]:
    holds = frame.holds(frame.buffers[source.buffer])
    if source.indices or axis >= len(holds) or any(hold.fragment for hold in holds):
        raise refuse("lowering", show_ref(source), "a part of a register tile", "all of it", step="lower")
    return holds, axis


def _targets(frame: CudaFrame, ref: Ref, holds: tuple[Hold, ...], axis: int) -> tuple[int, ...]:
    """Return which axes of the source the target's axes are; raises Ended(Rejected) where others hold them."""
    buffer = frame.buffers[ref.buffer]
    if buffer.space != "register" or ref.indices:
        raise refuse("lowering", show_ref(ref), "a reduction into memory", "all of a register buffer", step="lower")
    left = [(at, hold) for at, hold in enumerate(holds) if at != axis and hold.extent > 1]
    mine = [hold for hold in frame.holds(buffer) if hold.extent > 1]
    same = len(left) == len(mine) and all(
        (one.threads, one.each, one.group) == (hold.threads, hold.each, hold.group)
        and (one.stride == hold.stride or one.threads == 1)
        for one, (_, hold) in zip(mine, left)
    )
    if not same:
        raise refuse("lowering", show_ref(ref), "elements that other threads hold", "the source's spread", step="lower")
    return tuple(at for at, _ in left)


@contextmanager
def _left(frame: CudaFrame, holds: tuple[Hold, ...], axis: int) -> Iterator[Own]:
    """Open loops over a thread's elements along the axes that stay."""
    found = {}
    with ExitStack() as stack:
        for (at, hold), counter in zip(
            ((at, hold) for at, hold in enumerate(holds) if at != axis), counters_of(frame, len(holds))
        ):
            if hold.each > 1:
                frame.writer.pragma("unroll")
                head = f"for (int {counter} = 0; {counter} < {frame.c(hold.each_expr)}; ++{counter})"
                stack.enter_context(frame.writer.block(head))
                found[at] = f"[{counter}]"
        yield Own(found)


def _combined(operator: str, kind: str, old: str, new: str) -> str:
    """Print the statement that takes one more element in."""
    if operator in ("add", "mul"):
        return f"{old} {'+' if operator == 'add' else '*'}= {new};"
    names = {"max": "most", "min": "least"} if kind == "i32" else {"max": "max_nan", "min": "min_nan"}
    return f"{old} = {names[operator]}({old}, {new});"


def _lanes(hold: Hold, ref: Ref) -> str:
    """Print how many lanes, and how far apart, hold an axis within a warp."""
    if hold.threads & (hold.threads - 1) or hold.stride & (hold.stride - 1) or hold.stride * hold.threads > WARP:
        found = f"{hold.threads} threads {hold.stride} apart"
        raise refuse("lowering", show_ref(ref), found, "a power of two within a warp", step="lower")
    return f"{hold.threads}, {hold.stride}"


def _warps(frame: CudaFrame, hold: Hold, scratch: str) -> int:
    """Return the warps of a block whose threads all hold parts of one axis."""
    if hold.threads != frame.team.threads or frame.team.role or frame.team.threads % WARP or not scratch:
        needed = "an axis over all threads of the block, through a scratch buffer"
        raise refuse(
            "lowering", "within block", f"{hold.threads} of {frame.team.threads} threads", needed, step="lower"
        )
    return frame.team.threads // WARP


def _across(frame: CudaFrame, operator: str, part: str, hold: Hold, within: tuple[Scope, str]) -> str:
    """Print the value over all threads of the scope."""
    scope, scratch = within
    if scope == "thread" or (scope == "warp" and hold.threads == 1):
        if hold.threads > 1:
            raise refuse("lowering", "reduce", "within thread", "within warp or block: others hold parts", step="lower")
        return part
    if scope == "warp":
        return f"warp_reduce<{_OPERATORS[operator]}, {_lanes(hold, Ref(part))}>({part})"
    if scope not in ("block", "cluster"):
        raise refuse("lowering", "reduce", f"within {scope}", "within thread, warp, block or cluster", step="lower")
    _check_scratch(frame, scratch, frame.team.threads // WARP)
    total = f"block_reduce<{_OPERATORS[operator]}, {_warps(frame, hold, scratch)}>({part}, {scratch})"
    if scope == "block":
        return total
    blocks = math.prod(frame.number(count, "cluster") for count in frame.launch.cluster)
    return f"cluster_reduce<{_OPERATORS[operator]}, {blocks}>({total}, {scratch})"


def _check_scratch(frame: CudaFrame, scratch: str, least: int) -> None:
    buffer = frame.buffers.get(scratch)
    size = math.prod(frame.number(extent, scratch) for extent in buffer.shape) if buffer is not None else 0
    if size < least:
        raise refuse("lowering", "scratch", f"{size} elements", f"{least}, one a warp", step="lower")


def _reduce_memory(frame: CudaFrame, statement: Reduce) -> None:
    """One axis in shared memory: every thread of a warp adds what its lane meets, each warp the same."""
    tile = shaped(statement.source, frame.buffers)
    target = frame.buffers[statement.target.buffer]
    if tile.buffer.space != "shared" or len(tile.axes) != 1 or target.space != "register" or statement.carry:
        raise refuse("lowering", show_ref(statement.source), "this reduction", "one shared axis", step="lower")
    if frame.team.threads % WARP or statement.scope not in ("warp", "block"):
        raise refuse("lowering", "reduce", f"within {statement.scope}", "within warp or block", step="lower")
    if any(hold.extent > 1 for hold in frame.holds(target)) or CALCULATED[tile.buffer.dtype] != "f32":
        raise refuse("lowering", show_ref(statement.target), "more than one element", "one f32", step="lower")
    if statement.scope == "block":
        frame.writer.line("__syncthreads();")
    with frame.writer.scope():
        part, at = frame.fresh("part", "at")
        frame.writer.line(f"float {part} = {_IDENTITY[statement.operator]};")
        length = frame.c(tile.axes[0].length)
        head = f"for (int {at} = {frame.team.counter} % {WARP}; {at} < {length}; {at} += {WARP})"
        with frame.writer.block(head):
            inner = frame.child()
            inner.declare(at, Number(0), tile.axes[0].length)
            element = f"{tile.buffer.name}[{memory_index(inner, tile, address(tile, (Name(at),)))}]"
            frame.writer.line(_combined(statement.operator, "f32", part, element))
        frame.writer.line(f"{target.name} = warp_reduce<{_OPERATORS[statement.operator]}, {WARP}, 1>({part});")
