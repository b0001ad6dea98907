"""Statements in C: loops, branches and declarations around the tiles."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from cake_tui.ir.expr import Binary, Expr, Number, Ref, names_in
from cake_tui.ir.lower.c import prelude
from cake_tui.ir.lower.c.elements import lower_assign, lower_copy, lower_outer, turn_count, versioned
from cake_tui.ir.lower.c.frame import CFrame
from cake_tui.ir.lower.c.values import Values
from cake_tui.ir.lower.tiles import at_end, guard_parts, shaped
from cake_tui.ir.program import DTYPE_BYTES, Assign, Buffer, Contract, Copy, Declare, For, Guard, If, Lanes, Statement
from cake_tui.ir.refusal import refuse
from cake_tui.ir.walk import children, walk_body

LARGEST_ON_STACK = 1 << 18


def lower_body(frame: CFrame, body: tuple[Statement, ...]) -> None:
    """Lower the statements of one block, twice where an inner loop's guards can be settled before it."""
    innermost = [statement for statement in body if type(statement) is For and _holds_no_loop(statement)]
    if not innermost:
        _in_order(frame, body)
        return
    buffers = frame.buffers | {
        inner.buffer.name: inner.buffer for inner in walk_body(body) if isinstance(inner, Declare)
    }
    conditions = tuple(condition for loop in innermost for condition in _settled(frame, loop, buffers))
    versioned(frame, conditions, lambda inner: _in_order(inner, body))


@lru_cache(maxsize=1 << 10)
def _holds_no_loop(loop: For) -> bool:
    return not any(type(inner) is For for inner in walk_body(loop.body))


def _settled(frame: CFrame, loop: For, buffers: Mapping[str, Buffer]) -> list[Expr]:
    """Return conditions, over what is visible before a loop, that settle guards inside it."""
    visible = frame.visible - {loop.variable}
    found = []
    for statement in walk_body(loop.body):
        guard, refs = _guarded_refs(statement)
        axes = tuple(axis for ref in refs for axis in shaped(ref, buffers).axes if axis.name)
        for condition in guard_parts(guard):
            end = at_end(condition, axes)
            if end is not None and names_in(end) <= visible:
                found.append(frame.tidy(end))
    return found


def _guarded_refs(statement: Statement) -> tuple[Guard | None, tuple[Ref, ...]]:
    match statement:
        case Assign(target=target, where=where):
            return where, (target,)
        case Copy(source=source, target=target, where=where):
            return where, (source, target)
        case Contract(left=left, right=right, where=where):
            return where, (left, right)
        case _:
            return None, ()


def _in_order(frame: CFrame, body: tuple[Statement, ...]) -> None:
    inner = frame.child() if any(isinstance(statement, Declare) for statement in body) else frame
    declared: list[tuple[str, int, int]] = []
    for statement in body:
        if isinstance(statement, Declare):
            first = len(inner.writer.lines)
            _declare(inner, statement.buffer)
            declared.append((statement.buffer.name, first, len(inner.writer.lines)))
        else:
            _lower(inner, statement)
    for name, first, last in reversed(declared):
        inner.writer.drop_unused(name, first, last)


def _lower(frame: CFrame, statement: Statement) -> None:
    match statement:
        case For():
            _for(frame, statement)
        case If():
            _if(frame, statement)
        case Assign():
            lower_assign(frame, statement)
        case Copy():
            lower_copy(frame, statement)
        case Contract():
            lower_outer(frame, statement)
        case _:
            kind = type(statement).__name__
            raise refuse(
                "lowering", kind, f"a statement {kind}", "one that c has: for, if, copy, maps, outer", step="lower"
            )


def _for(frame: CFrame, loop: For) -> None:
    if loop.stages is not None:
        raise refuse(
            "lowering", loop.variable, "pipeline_stage", "a plain loop: c has no asynchronous copies", step="lower"
        )
    inner = frame.child()
    turns = frame.proofs.number(frame.tidy(Binary("-", loop.stop, loop.start)))
    if turns is not None and turns <= 0:
        return
    if turns is not None and turns <= (frame.proofs.number(frame.tidy(loop.step)) or 0):
        inner.replace(loop.variable, loop.start)
        if any(isinstance(child, Declare) for _, child in children(loop)):
            with frame.writer.block(""):
                lower_body(inner, loop.body)
        else:
            lower_body(inner, loop.body)
        return
    inner.declare(loop.variable, loop.start, frame.behind_last(loop))
    unroll = frame.unroll_of(loop)
    if unroll > 1:
        frame.writer.pragma(f"GCC unroll {unroll}")
    name = loop.variable
    step = f"{name}++" if frame.tidy(loop.step) == Number(1) else f"{name} += {frame.c(loop.step)}"
    head = f"for (long {name} = {frame.c(loop.start)}; {name} < {frame.c(loop.stop, 4)}; {step})"
    with frame.writer.block(head):
        lower_body(inner, loop.body)


def _if(frame: CFrame, branch: If) -> None:
    condition = frame.tidy(branch.condition)
    holds = frame.proofs.holds(condition)
    if holds is not None:
        lower_body(frame, branch.then if holds else branch.orelse)
        return
    with frame.writer.block(f"if ({frame.c(condition)})"):
        lower_body(frame.knowing([condition]), branch.then)
    if branch.orelse:
        frame.writer.otherwise()
        with frame.writer.block("} else"):
            lower_body(frame, branch.orelse)


def _declare(frame: CFrame, buffer: Buffer) -> None:
    if buffer.dtype not in ("f32", "f64"):
        raise refuse("lowering", buffer.name, buffer.dtype, "f32 or f64 on c", step="lower")
    frame.buffers[buffer.name] = buffer
    if buffer.space == "shared":
        _declare_shared(frame, buffer)
    else:
        _declare_register(frame, buffer)


def _declare_shared(frame: CFrame, buffer: Buffer) -> None:
    elements: Expr = Number(1)
    size = DTYPE_BYTES[buffer.dtype]
    for axis, extent in enumerate(buffer.shape):
        size *= frame.number(extent, buffer.name)
        row = Binary("+", extent, buffer.pad) if axis == len(buffer.shape) - 1 and axis else extent
        elements = Binary("*", elements, row)
    align = f"_Alignas({buffer.align}) " if buffer.align else ""
    # A thread's stack may be small, and guarded by nothing; its own static storage is neither.
    where = "static _Thread_local " if size > LARGEST_ON_STACK else ""
    frame.writer.line(f"{where}{align}{prelude.type_of(buffer.dtype, 1)} {buffer.name}[{frame.c(elements)}];")


def _declare_register(frame: CFrame, buffer: Buffer) -> None:
    lanes = frame.number(buffer.spread.count, buffer.name) if isinstance(buffer.spread, Lanes) else 1
    kind = frame.needs.type(buffer.dtype, lanes)
    text = ""
    for axis, extent in enumerate(buffer.shape):
        last = axis == len(buffer.shape) - 1
        step = lanes if last else 1
        if frame.number(extent, buffer.name) % step:
            raise refuse(
                "lowering", buffer.name, f"{frame.c(extent)} elements", f"whole vectors of {step}", step="lower"
            )
        turns = Binary("/", extent, buffer.spread.count) if step > 1 and isinstance(buffer.spread, Lanes) else extent
        text += f"[{turn_count(frame, turns, extent, step)}]"
    if not buffer.shape:
        init = "" if buffer.init is None else f" = {_scalar(frame, buffer)}"
        frame.writer.line(f"{kind} {buffer.name}{init};")
        return
    if buffer.init == Number(0):
        frame.writer.line(f"{kind} {buffer.name}{text} = {{0}};")
        return
    frame.writer.line(f"{kind} {buffer.name}{text};")
    if buffer.init is not None:
        lower_assign(frame, Assign(Ref(buffer.name), buffer.init))


def _scalar(frame: CFrame, buffer: Buffer) -> str:
    assert buffer.init is not None  # the caller looked
    return Values(frame, buffer.dtype, 1, (), "").scalar(buffer.init)
