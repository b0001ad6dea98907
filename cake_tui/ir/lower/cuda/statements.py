"""Statements in CUDA C++: loops, branches and declarations around the tiles; what cuda lacks is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cake_tui.ir.expr import Binary, Name, Number, Ref
from cake_tui.ir.lower.cuda.along import lower_along, lower_over_wait, reads_over, run_along, steps_of
from cake_tui.ir.lower.cuda.assignments import Map
from cake_tui.ir.lower.cuda.asynchronous import (
    arrive_after_copies,
    lower_arrive,
    lower_async_copy,
    lower_commit,
    lower_expect,
    lower_fence,
    lower_sync,
    lower_tma_copy,
    lower_wait,
    lower_wait_group,
)
from cake_tui.ir.lower.cuda.elements import (
    lower_assign,
    lower_atomic,
    lower_convert,
    lower_copy,
    lower_map,
    lower_split,
)
from cake_tui.ir.lower.cuda.frame import CudaFrame
from cake_tui.ir.lower.cuda.matrices import declare_operand, lower_mma, lower_operand
from cake_tui.ir.lower.cuda.pipelines import lower_read_ahead, reads_ahead
from cake_tui.ir.lower.cuda.products import lower_outer
from cake_tui.ir.lower.cuda.reductions import lower_pick, lower_reduce
from cake_tui.ir.lower.cuda.types import STORED
from cake_tui.ir.lower.tiles import shaped
from cake_tui.ir.program import (
    Arrive,
    Assign,
    Atomic,
    Barrier,
    Buffer,
    Commit,
    Completion,
    Contract,
    Convert,
    Copy,
    Declare,
    Expect,
    Fence,
    For,
    Fragment,
    If,
    Pick,
    Reduce,
    Split,
    Statement,
    Sync,
    Wait,
    WaitGroup,
    WarpRole,
)
from cake_tui.ir.refusal import refuse


def lower_body(frame: CudaFrame, body: tuple[Statement, ...]) -> None:
    """Lower the statements of one block, in order."""
    inner = frame.child()
    declared: list[tuple[str, int, int]] = []
    for place, statement in enumerate(body):
        first = len(inner.writer.lines)
        lower_statement(inner, statement)
        completes = _landing(statement)
        if completes is not None and (place + 1 == len(body) or _landing(body[place + 1]) != completes):
            arrive_after_copies(inner, completes)
        if isinstance(statement, Declare):
            declared.append((statement.buffer.name, first, len(inner.writer.lines)))
    for name, first, last in reversed(declared):
        inner.writer.drop_unused(name, first, last)


def _landing(statement: Statement) -> Completion | None:
    """Return the barrier that a thread's own copies complete on."""
    if not isinstance(statement, Copy) or statement.kind != "async_copy" or statement.completes is None:
        return None
    return statement.completes if statement.completes.kind == "barrier" else None


def lower_statement(frame: CudaFrame, statement: Statement) -> None:
    """Lower one statement."""
    lower = _LOWERED.get(type(statement))
    if lower is None:
        kind = type(statement).__name__.lower()
        raise refuse("lowering", kind, f"the statement {kind}", "one that lowering to cuda has", step="lower")
    lower(frame, statement)


def _for(frame: CudaFrame, loop: For) -> None:
    inner = frame.child()
    name = loop.variable
    turns = frame.proofs.number(frame.tidy(Binary("-", loop.stop, loop.start)))
    if turns is not None and turns <= 0:
        return
    if turns is not None and turns <= (frame.proofs.number(frame.tidy(loop.step)) or 0):
        inner.replace(name, loop.start)
        with frame.writer.scope():
            lower_body(inner, loop.body)
        return
    product = reads_ahead(frame, loop)
    if product is not None:
        lower_read_ahead(frame, loop, product)
        return
    over = reads_over(frame, loop)
    if over is not None:
        with frame.writer.scope():
            lower_over_wait(frame.child(), loop, over, lower_body)
        return
    steps = steps_of(frame, loop) if loop.stages is None else None
    vector = 1 if steps is None else run_along(frame, loop, steps)
    if steps is not None and vector > 1:
        lower_along(frame, loop, steps, vector)
        return
    inner.declare(name, loop.start, frame.behind_last(loop))
    if loop.unroll is not None:
        # Said for 1 too: left alone, the compiler unrolls short loops by itself.
        frame.writer.pragma(f"unroll {frame.number(loop.unroll, 'unroll')}")
    step = f"++{name}" if frame.tidy(loop.step) == Number(1) else f"{name} += {frame.c(loop.step)}"
    start, stop = frame.c(loop.start), frame.c(loop.stop, 4)
    with frame.writer.block(f"for ({frame.integer} {name} = {start}; {name} < {stop}; {step})"):
        line = len(frame.writer.lines)
        slot = _slot(inner, loop)
        lower_body(inner, loop.body)
        if slot:
            frame.writer.drop_unused(slot, line, line + 1)


def _slot(frame: CudaFrame, loop: For) -> str:
    """Name the slot of a turn of a pipeline; rings and barriers are indexed by it."""
    if loop.stages is None:
        return ""
    value = frame.tidy(Binary("%", Name(loop.variable), loop.stages))
    if not isinstance(value, Binary):
        return ""
    name = next(frame.fresh("slot"))
    if name in frame.visible:
        name = next(frame.fresh(f"{loop.variable}_slot"))
    frame.writer.line(f"const int {name} = {frame.c(value)};")
    frame.define(name, value)
    frame.aliased(name, value)
    return name


def _if(frame: CudaFrame, branch: If) -> None:
    condition = frame.tidy(branch.condition)
    holds = frame.proofs.holds(condition)
    if holds is not None:
        with frame.writer.scope():
            lower_body(frame, branch.then if holds else branch.orelse)
        return
    with frame.writer.block(f"if ({frame.c(condition)})"):
        lower_body(frame.knowing([condition]), branch.then)
    if branch.orelse:
        frame.writer.otherwise()
        with frame.writer.block("} else"):
            lower_body(frame, branch.orelse)


def _declare(frame: CudaFrame, statement: Declare) -> None:
    buffer = statement.buffer
    frame.buffers[buffer.name] = buffer
    if buffer.space != "register":
        return  # shared arrays stand at the head of the function
    declare_registers(frame, buffer)


def declare_registers(frame: CudaFrame, buffer: Buffer) -> None:
    """Declare a thread's own part of a register buffer and fill it."""
    if isinstance(buffer.spread, Fragment) and buffer.name not in frame.spreads.holds:
        declare_operand(frame, buffer)
        return
    holds = frame.holds(buffer)
    text = "".join(f"[{frame.c(hold.each_expr)}]" for hold in holds if hold.each > 1)
    head = f"{STORED[buffer.dtype]} {buffer.name}{text}"
    if buffer.init == Number(0) and text:
        frame.writer.line(f"{head} = {{}};")
        return
    frame.writer.line(f"{head};")
    if buffer.init is None:
        return
    line = len(frame.writer.lines)
    _fill(frame, buffer)
    if len(frame.writer.lines) == line + 1 and not text:
        # One element: its value stands with its declaration.
        value = frame.writer.lines.pop().split(" = ", 1)[1]
        frame.writer.lines[-1] = f"{frame.writer.lines[-1].rstrip(';')} = {value}"


def _fill(frame: CudaFrame, buffer: Buffer) -> None:
    assert buffer.init is not None  # the callers looked
    ref = Ref(buffer.name)
    lower_map(frame, Map(ref, buffer.init, "=", None), shaped(ref, frame.buffers).axes)


def _contract(frame: CudaFrame, statement: Contract) -> None:
    if statement.op == "wgmma":
        raise refuse("lowering", "wgmma", "a product by a group of warps", "outer or mma", step="lower")
    (lower_mma if statement.op == "mma" else lower_outer)(frame, statement)


def _copy(frame: CudaFrame, statement: Copy) -> None:
    if isinstance(frame.buffers[statement.target.buffer].spread, Fragment) and statement.kind == "copy":
        lower_operand(frame, statement)
        return
    {"copy": lower_copy, "async_copy": lower_async_copy, "tma_copy": lower_tma_copy}[statement.kind](frame, statement)


def _nothing(frame: CudaFrame, statement: Statement) -> None:
    """What stands at the head of the function."""


_LOWERED: Mapping[type, Callable[[CudaFrame, Any], None]] = {
    For: _for,
    If: _if,
    Declare: _declare,
    Assign: lower_assign,
    Copy: _copy,
    Contract: _contract,
    Atomic: lower_atomic,
    Split: lower_split,
    Convert: lower_convert,
    Commit: lower_commit,
    WaitGroup: lower_wait_group,
    Wait: lower_wait,
    Arrive: lower_arrive,
    Expect: lower_expect,
    Reduce: lower_reduce,
    Pick: lower_pick,
    Sync: lower_sync,
    Fence: lower_fence,
    Barrier: _nothing,
    WarpRole: _nothing,
}
