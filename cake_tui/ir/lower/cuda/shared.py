"""Shared memory of a launch: static arrays while they are few, one dynamic array with offsets beyond that."""

from __future__ import annotations

import msgspec

from cake_tui.ir.expr import Binary, Expr, Number
from cake_tui.ir.lower.cuda.frame import CudaFrame
from cake_tui.ir.lower.cuda.types import STORED
from cake_tui.ir.program import DTYPE_BYTES, Barrier, Buffer, Declare, Launch
from cake_tui.ir.walk import walk_body

STATIC_BYTES = 48 << 10  # what a block has without asking for more
ALIGN = 16


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
    sizes = [_bytes(frame, buffer) for buffer in buffers]
    phases = sum(8 * frame.number(barrier.slots, barrier.name) for barrier in barriers)
    total = 0
    offsets = []
    for buffer, size in zip(buffers, sizes):
        align = max(buffer.align, ALIGN)
        total = -(-total // align) * align
        offsets.append(total)
        total += size
    if total + phases <= STATIC_BYTES:
        for buffer in buffers:
            align = max(buffer.align, ALIGN)
            elements = frame.c(_elements(buffer))
            frame.writer.line(f"__shared__ __align__({align}) {STORED[buffer.dtype]} {buffer.name}[{elements}];")
        total = 0
    else:
        align = max([ALIGN, *(buffer.align for buffer in buffers)])
        frame.writer.line(f"extern __shared__ __align__({align}) unsigned char shared_memory[];")
        for buffer, offset in zip(buffers, offsets):
            kind = STORED[buffer.dtype]
            at = f"shared_memory + {offset}" if offset else "shared_memory"
            frame.writer.line(f"{kind} *{buffer.name} = reinterpret_cast<{kind} *>({at});")
    return SharedMemory(total)


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
