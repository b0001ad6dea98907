"""Shared memory of a launch: static arrays while they are few, one dynamic array with offsets beyond that."""

from __future__ import annotations

import msgspec

from cake_tui.ir.expr import Binary, Expr, Number
from cake_tui.ir.lower.cuda.frame import CudaFrame
from cake_tui.ir.lower.cuda.types import STORED
from cake_tui.ir.program import DTYPE_BYTES, Barrier, Buffer, Copy, Declare, Launch
from cake_tui.ir.walk import walk_body

STATIC_BYTES = 48 << 10  # what a block has without asking for more
ALIGN = 16
BARRIER_BYTES = 8


class SharedMemory(msgspec.Struct, frozen=True):
    """What the launch must ask for."""

    dynamic_bytes: int


def declare_shared(frame: CudaFrame, launch: Launch) -> SharedMemory:
    """Declare every shared buffer of a launch at the head of its function."""
    statements = walk_body(launch.body)
    buffers = [one.buffer for one in statements if isinstance(one, Declare) and one.buffer.space == "shared"]
    barriers = [one for one in statements if isinstance(one, Barrier)]
    # Those with the widest alignment first: nothing is lost between them.
    buffers.sort(key=lambda buffer: -max(buffer.align, ALIGN))
    frame.buffers.update((buffer.name, buffer) for buffer in buffers)
    sizes = [_bytes(frame, buffer) for buffer in buffers]
    phases = sum(BARRIER_BYTES * frame.number(barrier.slots, barrier.name) for barrier in barriers)
    total = 0
    offsets = []
    for buffer, size in zip(buffers, sizes):
        align = max(buffer.align, ALIGN)
        total = -(-total // align) * align
        offsets.append(total)
        total += size
    dynamic = total + phases > STATIC_BYTES
    if dynamic:
        widest = max([ALIGN, *(buffer.align for buffer in buffers)])
        frame.writer.line(f"extern __shared__ __align__({widest}) unsigned char shared_memory[];")
    for buffer, offset in zip(buffers, offsets):
        kind = STORED[buffer.dtype]
        if dynamic:
            _place(frame, kind, buffer.name, offset)
        else:
            aligned = f"__align__({max(buffer.align, ALIGN)})"
            frame.writer.line(f"__shared__ {aligned} {kind} {buffer.name}[{frame.c(_elements(buffer))}];")
    total = -(-total // BARRIER_BYTES) * BARRIER_BYTES
    for barrier in barriers:
        frame.slots[barrier.name] = barrier.slots
        if dynamic:
            _place(frame, "mbarrier", barrier.name, total)
            total += BARRIER_BYTES * frame.number(barrier.slots, barrier.name)
        else:
            frame.writer.line(f"__shared__ mbarrier {barrier.name}[{frame.c(barrier.slots)}];")
    if barriers:
        _initialise(frame, launch, barriers)
    return SharedMemory(total if dynamic else 0)


def _place(frame: CudaFrame, kind: str, name: str, offset: int) -> None:
    at = f"shared_memory + {offset}" if offset else "shared_memory"
    frame.writer.line(f"{kind} *{name} = reinterpret_cast<{kind} *>({at});")


def _initialise(frame: CudaFrame, launch: Launch, barriers: list[Barrier]) -> None:
    """Make the barriers, before any thread can meet one."""
    writer = frame.writer
    with writer.block("if (threadIdx.x == 0)"):
        counts = dict.fromkeys(barrier.slots for barrier in barriers)
        for slots in counts:
            mine = [barrier for barrier in barriers if barrier.slots == slots]
            if frame.number(slots, mine[0].name) == 1:
                for barrier in mine:
                    writer.line(f"barrier_init(&{barrier.name}[0], {frame.c(barrier.arrivals)});")
                continue
            (slot,) = frame.fresh("slot")
            with writer.block(f"for (int {slot} = 0; {slot} < {frame.c(slots)}; ++{slot})"):
                for barrier in mine:
                    writer.line(f"barrier_init(&{barrier.name}[{slot}], {frame.c(barrier.arrivals)});")
        if launch.cluster or any(isinstance(one, Copy) and one.kind == "tma_copy" for one in walk_body(launch.body)):
            writer.line("barrier_init_fence();")
    writer.line("cluster_sync();" if launch.cluster else "__syncthreads();")


def _elements(buffer: Buffer) -> Expr:
    elements: Expr = Number(1)
    order = buffer.order or tuple(range(len(buffer.shape)))
    for place, axis in enumerate(order):
        extent = buffer.shape[axis]
        row = Binary("+", extent, buffer.pad) if place == len(order) - 1 and place else extent
        elements = Binary("*", elements, row)
    return elements


def _bytes(frame: CudaFrame, buffer: Buffer) -> int:
    return frame.number(_elements(buffer), buffer.name) * DTYPE_BYTES[buffer.dtype]
