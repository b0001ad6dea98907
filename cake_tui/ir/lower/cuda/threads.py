"""A team's threads in CUDA C++: the thread's number and its coordinates in every spread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from cake_tui.ir.expr import Binary, Expr, Name, Number
from cake_tui.ir.lower.cuda.frame import CudaFrame
from cake_tui.ir.lower.cuda.holds import Hold
from cake_tui.ir.program import Buffer, Threads


@contextmanager
def declare_threads(frame: CudaFrame, buffers: Iterable[Buffer], counter: str) -> Iterator[None]:
    """Set the thread's number, from 0 in its team, and its coordinates; what nothing names goes again."""
    team, writer = frame.team, frame.writer
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
                if name != team.counter:
                    declared.append((name, len(writer.lines)))
                    writer.line(f"const int {name} = {_value(frame, hold, buffer)};")
                    frame.declare(name, Number(0), Number(hold.threads))
    frame.keep_head()
    yield
    for name, line in reversed(declared):
        writer.drop_unused(name, line, line + 1)


def _name(frame: CudaFrame, hold: Hold, from_last: int) -> str:
    if hold.stride == 1 and hold.threads == frame.team.threads:
        return frame.team.counter
    wanted = {0: "tx", 1: "ty", 2: "tz"}.get(from_last, "tw")
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
