"""Asynchronous statements in CUDA C++: cp.async, the copy engine, commit groups, phase barriers, fences."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cake_tui.ir.expr import All, Binary, Expr, Name, Number, Span
from cake_tui.ir.lower.cuda.assignments import split_tests, test_of
from cake_tui.ir.lower.cuda.elements import copy_axes, fits
from cake_tui.ir.lower.cuda.frame import CudaFrame
from cake_tui.ir.lower.cuda.values import Values
from cake_tui.ir.lower.cuda.walks import walk_tile
from cake_tui.ir.lower.guards import Asked, sort_guard
from cake_tui.ir.lower.tiles import ZERO, Shaped, TileAxis, address, guard_parts, shaped
from cake_tui.ir.program import (
    DTYPE_BYTES,
    WARP,
    Arrive,
    Commit,
    Completion,
    Contract,
    Copy,
    Expect,
    Fence,
    Sync,
    Wait,
    WaitGroup,
)
from cake_tui.ir.refusal import refuse
from cake_tui.ir.walk import walk_body
from cake_tui.model.lowered import TensorMap

CP_ASYNC = (4, 8, 16)  # bytes
MOST_NAMED = 15  # number 0 is the block's
MOST_SLOTS = 32  # of a barrier: a bit of a word each
_FENCES = {"async_proxy": "fence_async_proxy", "block": "fence_block", "cluster": "fence_cluster",
           "device": "fence_device"}  # fmt: skip
_UNITS = {"async_copy": "cp_async", "tma_copy": "tma"}


# --- copies that threads start -----------------------------------------------------------------------


def lower_async_copy(frame: CudaFrame, statement: Copy) -> None:
    """Lower ``async_copy``: each thread starts copies of 4, 8 or 16 bytes, zeros where the guard fails."""
    source, target = shaped(statement.source, frame.buffers), shaped(statement.target, frame.buffers)
    if target.buffer.space != "shared" or source.buffer.space not in ("param", "workspace"):
        raise refuse(
            "lowering", "async_copy", f"to {target.buffer.space}", "from global to shared memory", step="lower"
        )
    if source.buffer.dtype != target.buffer.dtype:
        raise refuse("lowering", "async_copy", source.buffer.dtype, target.buffer.dtype, step="lower")
    axes = copy_axes(frame, statement)
    asked = sort_guard(frame, statement.where, axes)
    nothing = asked is None
    if statement.where is not None and statement.where.otherwise != Number(0):
        raise refuse("lowering", "async_copy", "another value than 0 outside", "else 0", step="lower")
    size = DTYPE_BYTES[target.buffer.dtype]
    vector = 1 if statement.vector is None else frame.number(statement.vector, "vector")
    refs = (statement.source, statement.target)
    if vector * size not in CP_ASYNC or (vector > 1 and not all(fits(frame, ref, axes, vector) for ref in refs)):
        raise refuse(
            "lowering", "async_copy", f"{vector * size} bytes of {source.buffer.dtype}", "4, 8 or 16 aligned ones",
            step="lower",
        )  # fmt: skip
    asked = asked or Asked((), ())
    width = vector * size
    about = statement.target.buffer
    with walk_tile(frame, axes, [None] * len(axes), vector, statement.vector, about=about) as walk:
        values = Values(walk, axes, target.buffer.dtype)
        places = f"&{values.place(target)}, &{values.place(source)}"
        whole, count = split_tests(values, [*asked.whole, *asked.elements], vector)
        test = "false" if nothing else test_of(walk.frame, whole)
        if count:
            given = f"{size} * most(0, least({count}, {vector}))"
            frame.writer.line(f"cp_async_part<{width}>({places}, {f'{test} ? {given} : 0' if test else given});")
        elif test:
            frame.writer.line(f"cp_async_or_zero<{width}>({places}, {test});")
        else:
            frame.writer.line(f"cp_async<{width}>({places});")


def unit_of(frame: CudaFrame, group: str) -> str:
    """Return what runs the statements of a commit group: cp_async, tma or wgmma."""
    for statement in walk_body(frame.launch.body):
        if not isinstance(statement, Copy | Contract) or statement.completes is None:
            continue
        if (statement.completes.kind, statement.completes.name) == ("group", group):
            return "wgmma" if isinstance(statement, Contract) else _UNITS[statement.kind]
    return "cp_async"


def lower_commit(frame: CudaFrame, statement: Commit) -> None:
    """Lower ``commit group``."""
    frame.writer.line(f"{unit_of(frame, statement.group)}_commit();")


def lower_wait_group(frame: CudaFrame, statement: WaitGroup) -> None:
    """Lower ``wait group``: the machine counts all groups of a unit, so that two names at once wait for everything."""
    unit = unit_of(frame, statement.group)
    groups = {other.group for other in walk_body(frame.launch.body) if isinstance(other, Commit)}
    mixed = sum(unit_of(frame, group) == unit for group in groups) > 1
    pending: Expr = Number(0) if mixed else statement.pending
    if frame.number(pending, "pending") < 0:
        raise refuse("lowering", "pending", frame.c(pending), "0 or more", step="lower")
    frame.writer.line(f"{unit}_wait<{frame.c(pending)}>();")


# --- phase barriers ----------------------------------------------------------------------------------


def slot_of(frame: CudaFrame, barrier: str, index: Expr) -> str:
    """Print one barrier of an array: indices wrap."""
    return f"{barrier}[{frame.c(wrapped(frame, barrier, index))}]"


def wrapped(frame: CudaFrame, barrier: str, index: Expr) -> Expr:
    """Return the slot that an index means."""
    slots = frame.slots[barrier]
    return frame.tidy(ZERO if frame.number(slots, barrier) == 1 else Binary("%", index, slots))


def lower_wait(frame: CudaFrame, statement: Wait) -> None:
    """Lower ``wait bar[k]``: each thread keeps the parity of every slot as a bit."""
    phase = frame.phases[statement.barrier]
    slot = frame.c(wrapped(frame, statement.barrier, statement.slot), 6)
    place = slot_of(frame, statement.barrier, statement.slot)
    if frame.number(frame.slots[statement.barrier], statement.barrier) == 1:
        frame.writer.line(f"barrier_wait(&{place}, {phase});")
        frame.writer.line(f"{phase} ^= 1;")
    else:
        frame.writer.line(f"barrier_wait(&{place}, {phase} >> {slot} & 1);")
        frame.writer.line(f"{phase} ^= 1u << {slot};")


def lower_arrive(frame: CudaFrame, statement: Arrive) -> None:
    """Lower ``arrive bar[k]``: by each thread, by the first of each warp or by the first of the role."""
    line = f"barrier_arrive(&{slot_of(frame, statement.barrier, statement.slot)});"
    if frame.team.who == "one thread" or statement.once == "thread":
        frame.writer.line(line)
        return
    counter = frame.team.counter
    if statement.once == "warp":
        frame.writer.line("__syncwarp();")
    test = f"{counter} % {WARP} == 0" if statement.once == "warp" and frame.team.threads > WARP else f"{counter} == 0"
    with frame.writer.block(f"if ({test})"):
        frame.writer.line(line)


def lower_expect(frame: CudaFrame, statement: Expect) -> None:
    """Lower ``expect bar[k] bytes E``: one arrival."""
    line = f"barrier_expect(&{slot_of(frame, statement.barrier, statement.slot)}, {frame.c(statement.bytes)});"
    _elected(frame, [line])


def _elected(frame: CudaFrame, lines: Sequence[str]) -> None:
    if frame.team.who == "one thread":
        for line in lines:
            frame.writer.line(line)
        return
    with frame.writer.block(f"if ({frame.team.counter} == 0)"):
        for line in lines:
            frame.writer.line(line)


def arrive_after_copies(frame: CudaFrame, completes: Completion) -> None:
    """Hold a barrier's phase open until this thread's copies have landed; its own arrival is another statement."""
    assert completes.slot is not None  # a barrier's completion has one
    frame.writer.line(f"cp_async_arrive(&{slot_of(frame, completes.name, completes.slot)});")


# --- the copy engine ---------------------------------------------------------------------------------


def lower_tma_copy(frame: CudaFrame, statement: Copy) -> None:
    """Lower ``tma_copy``: one thread asks for a box; what lies outside the tensor is zero, or not stored."""
    source, target = shaped(statement.source, frame.buffers), shaped(statement.target, frame.buffers)
    loads = target.buffer.space == "shared"
    far, near = (source, target) if loads else (target, source)
    if near.buffer.space != "shared" or far.buffer.space not in ("param", "workspace") or statement.completes is None:
        raise refuse("lowering", "tma_copy", "these buffers", "between global and shared memory", step="lower")
    _check_outside(frame, statement, far, loads)
    tensor = _tensor_map(frame, far, near)
    starts = ", ".join(frame.c(_start(frame, far, axis)) for axis in reversed(range(len(far.buffer.shape))))
    place = f"&{near.ref.buffer}[{frame.c(address(near, tuple(ZERO for _ in near.axes)))}]"
    if loads:
        if statement.completes.kind != "barrier" or statement.completes.slot is None:
            raise refuse("lowering", "tma_copy", "a group", "a load completes on a barrier", step="lower")
        barrier = slot_of(frame, statement.completes.name, statement.completes.slot)
        _elected(frame, [f"tma_load({place}, &{tensor}, &{barrier}, {starts});"])
        return
    if frame.team.who != "one thread":
        raise refuse("lowering", "tma_copy", "a store by many threads", "a role of one thread", step="lower")
    _elected(frame, [f"tma_store(&{tensor}, {place}, {starts});"])


def _check_outside(frame: CudaFrame, statement: Copy, far: Shaped, loads: bool) -> None:
    """Refuse a guard that says another thing than the ends of the tensor, which the copy engine knows by itself."""
    where = statement.where
    asked = sort_guard(frame, where, copy_axes(frame, statement))
    if where is None:
        return
    left = guard_parts(where) if asked is None else (*asked.whole, *asked.elements)
    if left and loads and where.otherwise != Number(0):
        raise refuse("lowering", "tma_copy", "another value than 0 outside", "else 0", step="lower")
    for condition in left:
        if not any(_is_end(frame, far, axis, condition) for axis in far.axes):
            raise refuse("lowering", "where", frame.c(condition), "the ends of the tensor", step="lower")


def _is_end(frame: CudaFrame, far: Shaped, axis: TileAxis, condition: Expr) -> bool:
    match condition:
        case Binary("<", Name(name), bound) if name == axis.name:
            return frame.proofs.number(frame.tidy(Binary("-", bound, far.buffer.shape[axis.axis]))) == 0
        case _:
            return False


def _start(frame: CudaFrame, tile: Shaped, axis: int) -> Expr:
    """Return the first coordinate of a box along an axis."""
    index = tile.ref.indices[axis] if axis < len(tile.ref.indices) else All()
    if isinstance(index, Span):
        return frame.tidy(index.start)
    return ZERO if isinstance(index, All) else frame.tidy(index)


def _tensor_map(frame: CudaFrame, far: Shaped, near: Shaped) -> str:
    """Have a tensor map for this buffer, box and swizzle; return the argument's name.

    Its sizes may be known only at run time: dims and strides are worked out for each plan.
    """
    buffer = far.buffer
    if buffer.order and buffer.order != tuple(sorted(buffer.order)):
        raise refuse("lowering", "tma_copy", f"an order of axes of {buffer.name}", "rows in a row", step="lower")
    box = []
    spans = {axis.axis: axis for axis in far.axes}
    for axis in reversed(range(len(buffer.shape))):
        box.append(frame.number(spans[axis].length, "box") if axis in spans else 1)
    if not 1 <= len(box) <= 3:
        raise refuse("lowering", "tma_copy", f"{len(box)} axes", "1 to 3", step="lower")
    made = TensorMap("", buffer.name, buffer.dtype, (), (), tuple(box), near.buffer.swizzle)  # type: ignore[arg-type]
    for name, known in frame.tensor_maps.items():
        if msgspec.structs.replace(known, name="") == made:
            return name
    (wanted,) = frame.fresh(f"{buffer.name}_map")
    name = wanted
    number = 2
    while name in frame.tensor_maps:
        name = f"{wanted}{number}"
        number += 1
    frame.tensor_maps[name] = msgspec.structs.replace(made, name=name)
    return name


# --- barriers and fences -----------------------------------------------------------------------------


def lower_sync(frame: CudaFrame, statement: Sync) -> None:
    """Lower a barrier of the block, a warp, a cluster or so many threads."""
    match statement.scope:
        case "block":
            frame.writer.line("__syncthreads();")
        case "warp":
            frame.writer.line("__syncwarp();")
        case "cluster":
            frame.writer.line("cluster_sync();")
        case "named":
            if not 1 <= statement.number <= MOST_NAMED:
                raise refuse("lowering", "barrier", f"number {statement.number}", f"1 to {MOST_NAMED}", step="lower")
            threads = frame.team.expr if statement.threads is None else statement.threads
            frame.writer.line(f"named_barrier({statement.number}, {frame.c(threads)});")


def lower_fence(frame: CudaFrame, statement: Fence) -> None:
    """Lower a fence."""
    if statement.kind not in _FENCES:
        raise refuse("lowering", "fence", f"fence {statement.kind}", f"one of {', '.join(_FENCES)}", step="lower")
    frame.writer.line(f"{_FENCES[statement.kind]}();")
