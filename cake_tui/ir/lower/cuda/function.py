"""One launch as a `__global__` function: arguments, shared memory, block numbers, threads, body."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from cake_tui.ir.expr import Binary, Expr, Name, Number, names_in
from cake_tui.ir.lower.cuda.frame import CudaFrame, Team, runtime, wide
from cake_tui.ir.lower.cuda.holds import Hold, Spreads
from cake_tui.ir.lower.cuda.shared import declare_shared
from cake_tui.ir.lower.cuda.statements import lower_body
from cake_tui.ir.lower.cuda.types import STORED
from cake_tui.ir.lower.plan import entry_name
from cake_tui.ir.lower.writer import Writer
from cake_tui.ir.program import Buffer, Lanes, Launch, Program, Threads
from cake_tui.ir.refusal import refuse
from cake_tui.ir.walk import buffers_of, walk_body, writes
from cake_tui.model.lowered import Argument, TensorMap


class Function(msgspec.Struct, frozen=True):
    """The text of one launch, and what its plan needs beside the grid."""

    text: str
    threads: int
    smem_bytes: int  # dynamic
    tensor_maps: tuple[TensorMap, ...]
    constants: tuple[tuple[str, str], ...]  # at the top of the source besides the program's own


def function_of(program: Program, at: int, arguments: tuple[Argument, ...], names: frozenset[str]) -> Function:
    """Lower one launch; raises Ended(Rejected) for what cuda lacks."""
    launch = program.launches[at]
    writer = Writer()
    frame = CudaFrame(program, launch, writer, names)
    buffers = buffers_of(program, launch)
    _late_constants(frame, program)
    threads = frame.number(launch.threads, "threads")
    team, constants = _team(frame, program, at, threads)
    frame.team = team
    frame.spreads = Spreads(buffers, launch.body, _numbers(frame, buffers.values()))
    touched = [program.buffer(argument.name) for argument in arguments if argument.kind in ("buffer", "workspace")]
    if wide(frame, touched):
        frame.integer = "long long"
    shared = declare_shared(frame, launch)
    _blocks(frame, launch)
    head = len(writer.lines)
    declare_threads(frame, buffers.values(), "threadIdx.x")
    lower_body(frame, launch.body)
    for name, line in reversed(list(_declarations(writer, head, frame))):
        writer.drop_unused(name, line, line + 1)
    signature = Writer()
    signature.depth = 0
    parameters = ", ".join(_parameters(program, launch, arguments))
    bounds = f"__launch_bounds__({frame.c(team.expr)})"
    signature.line(f'extern "C" __global__ void {bounds} {entry_name(launch.name)}({parameters}) {{')
    text = "\n".join([*signature.lines, *writer.lines]) + "\n}\n"
    return Function(text, threads, shared.dynamic_bytes, tuple(frame.tensor_maps.values()), constants)


def _late_constants(frame: CudaFrame, program: Program) -> None:
    """Set the constants that depend on run-time sizes."""
    late = {size.name for size in runtime(program)}
    for const in program.consts:
        if names_in(const.value) & late:
            late.add(const.name)
            frame.writer.line(f"const int {const.name} = {frame.c(const.value)};")


def _team(frame: CudaFrame, program: Program, at: int, threads: int) -> tuple[Team, tuple[tuple[str, str], ...]]:
    """Return the block's threads, under a name of their own where they are an expression."""
    expr = program.launches[at].threads
    if isinstance(expr, Name | Number):
        return Team(threads, expr), ()
    counts = {launch.threads for launch in program.launches}
    (name,) = frame.fresh("THREADS" if len(counts) == 1 else f"{program.launches[at].name.upper()}_THREADS")
    frame.define(name, expr)
    return Team(threads, Name(name)), ((name, frame.c(expr)),)


def _numbers(frame: CudaFrame, buffers: Iterable[Buffer]) -> dict[str, tuple[int, ...]]:
    found = {}
    for buffer in buffers:
        if buffer.space != "register":
            continue
        match buffer.spread:
            case Threads(threads, each):
                found[buffer.name] = tuple(frame.number(count, buffer.name) for count in (*threads, *each))
            case Lanes():
                raise refuse("lowering", buffer.name, "a spread of lanes", "threads on cuda", step="lower")
            case None:
                found[buffer.name] = tuple(frame.number(extent, buffer.name) for extent in buffer.shape)
    return found


def _blocks(frame: CudaFrame, launch: Launch) -> None:
    """Set the grid's axes from the block's number."""
    if launch.persistent is not None or launch.cluster or launch.order != "row":
        raise refuse("lowering", launch.name, "persistent blocks, clusters or an order", "a plain grid", step="lower")
    if len(launch.axes) > 3:
        raise refuse("lowering", launch.name, f"{len(launch.axes)} grid axes", "at most 3", step="lower")
    for place, axis in enumerate(reversed(launch.axes)):
        if frame.proofs.number(frame.tidy(axis.extent)) == 1:
            frame.replace(axis.name, Number(0))
        else:
            frame.declare(axis.name, Number(0), axis.extent)
            frame.writer.line(f"const {frame.integer} {axis.name} = blockIdx.{'xyz'[place]};")


def declare_threads(frame: CudaFrame, buffers: Iterable[Buffer], counter: str) -> None:
    """Set the thread's number and its coordinates in every spread of the team."""
    team = frame.team
    frame.writer.line(f"const int {team.counter} = {counter};")
    frame.declare(team.counter, Number(0), Number(team.threads))
    for buffer in buffers:
        if buffer.space != "register" or buffer.name not in frame.spreads.holds or buffer.owner not in ("", team.role):
            continue
        holds = frame.spreads.holds[buffer.name]
        for axis, hold in enumerate(holds):
            if hold.threads > 1 and (hold.stride, hold.threads) not in frame.coordinates:
                _coordinate(frame, hold, _letter(frame, hold, axis, len(holds)), buffer)


def _letter(frame: CudaFrame, hold: Hold, axis: int, count: int) -> str:
    wanted = {0: "tx", 1: "ty", 2: "tz"}.get(count - 1 - axis, "tw") if count > 1 else "tx"
    if hold.stride == 1 and hold.threads == frame.team.threads:
        return frame.team.counter
    taken = set(frame.coordinates.values())
    number = 2
    name = wanted
    while name in taken or name in frame.taken:
        name = f"{wanted}{number}"
        number += 1
    return name


def _coordinate(frame: CudaFrame, hold: Hold, name: str, buffer: Buffer) -> None:
    frame.coordinates[hold.stride, hold.threads] = name
    if name == frame.team.counter:
        return
    counter: Expr = Name(frame.team.counter)
    stride, threads = _counts(frame, hold, buffer)
    text = frame.c(counter) if hold.stride == 1 else f"{frame.c(counter)} / {frame.c(stride, 6)}"
    if hold.stride * hold.threads < frame.team.threads:
        text += f" % {frame.c(threads, 6)}"
    frame.writer.line(f"const int {name} = {text};")
    frame.declare(name, Number(0), Number(hold.threads))


def _counts(frame: CudaFrame, hold: Hold, buffer: Buffer) -> tuple[Expr, Expr]:
    """Return stride and threads of a hold as the program names them."""
    assert isinstance(buffer.spread, Threads)  # only those have coordinates
    stride: Expr = Number(1)
    for count in reversed(buffer.spread.threads):
        if frame.proofs.number(stride) == hold.stride and frame.proofs.number(frame.tidy(count)) == hold.threads:
            return stride, count
        stride = count if stride == Number(1) else Binary("*", count, stride)
    return Number(hold.stride), Number(hold.threads)


def _declarations(writer: Writer, head: int, frame: CudaFrame) -> Iterable[tuple[str, int]]:
    """Yield the names and lines of what `declare_threads` wrote."""
    names = [frame.team.counter, *(name for name in frame.coordinates.values() if name != frame.team.counter)]
    for line, name in enumerate(names, start=head):
        if writer.lines[line].lstrip().startswith(f"const int {name} ="):
            yield name, line


def _parameters(program: Program, launch: Launch, arguments: tuple[Argument, ...]) -> list[str]:
    written = {ref.buffer for statement in walk_body(launch.body) for ref in writes(statement)}
    texts = []
    for argument in arguments:
        if argument.kind == "size":
            texts.append(f"int {argument.name}")
        elif argument.kind == "tensor_map":
            texts.append(f"const __grid_constant__ tensor_map {argument.name}")
        else:
            buffer = program.buffer(argument.name)
            constant = "" if argument.name in written else "const "
            texts.append(f"{constant}{STORED[buffer.dtype]} *__restrict__ {buffer.name}")
    return texts
