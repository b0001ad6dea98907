"""One launch as a `__global__` function: arguments, shared memory, block numbers, threads, body."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from cake_tui.ir.expr import Name, Number, names_in
from cake_tui.ir.lower.cuda.blocks import declare_blocks, is_flat
from cake_tui.ir.lower.cuda.frame import CudaFrame, Team, runtime, wide
from cake_tui.ir.lower.cuda.holds import Spreads
from cake_tui.ir.lower.cuda.roles import bands_of, lower_launch
from cake_tui.ir.lower.cuda.shared import declare_shared
from cake_tui.ir.lower.cuda.types import STORED
from cake_tui.ir.lower.plan import entry_name
from cake_tui.ir.lower.writer import Writer
from cake_tui.ir.program import WARP, Buffer, Declare, Fragment, Lanes, Launch, Program, Role, Threads, WarpRole
from cake_tui.ir.refusal import refuse
from cake_tui.ir.walk import buffers_of, walk_body, writes
from cake_tui.model.lowered import Argument, TensorMap


class Function(msgspec.Struct, frozen=True):
    """The text of one launch, and what its plan needs beside the grid."""

    text: str
    arguments: tuple[Argument, ...]
    threads: int
    smem_bytes: int  # dynamic
    flat: bool  # all blocks along x
    tensor_maps: tuple[TensorMap, ...]
    constants: tuple[tuple[str, str], ...]  # at the top of the source besides the program's own


def function_of(program: Program, at: int, arguments: tuple[Argument, ...], names: frozenset[str]) -> Function:
    """Lower one launch; raises Ended(Rejected) for what cuda lacks."""
    launch = program.launches[at]
    writer = Writer()
    frame = CudaFrame(program, launch, writer, names)
    buffers = buffers_of(program.buffers, launch)
    _late_constants(frame, program)
    threads = frame.number(launch.threads, "threads")
    team, constants = _team(frame, program, at, threads)
    frame.team = team
    frame.spreads = Spreads(buffers, launch.body, _numbers(frame, buffers.values(), launch))
    touched = [program.buffer(argument.name) for argument in arguments if argument.kind in ("buffer", "workspace")]
    if wide(frame, touched):
        frame.integer = "long long"
    shared = declare_shared(frame, launch)
    declare_blocks(frame, launch)
    constants += lower_launch(frame, launch, buffers)
    body = "\n".join(line for line in writer.lines if line)
    given = (
        *(one for one in arguments if one.kind == "size" or re.search(rf"\b{one.name}\b", body)),
        *(Argument("tensor_map", name) for name in frame.tensor_maps),
    )
    signature = Writer()
    signature.depth = 0
    parameters = ", ".join(_parameters(program, launch, given))
    alone = ", 1" if any(isinstance(one, WarpRole) and one.registers is not None for one in launch.body) else ""
    bounds = f"__launch_bounds__({frame.c(team.expr)}{alone})"
    signature.line(f'extern "C" __global__ void {bounds} {entry_name(launch.name)}({parameters}) {{')
    text = "\n".join([*signature.lines, body]) + "\n}\n"
    return Function(
        text, given, threads, shared.dynamic_bytes, is_flat(frame, launch), tuple(frame.tensor_maps.values()), constants
    )


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


def _numbers(frame: CudaFrame, buffers: Iterable[Buffer], launch: Launch) -> dict[str, tuple[int, ...]]:
    found = {}
    for buffer in buffers:
        if buffer.space != "register":
            continue
        match buffer.spread:
            case Threads(threads, each, runs):
                found[buffer.name] = tuple(frame.number(count, buffer.name) for count in (*threads, *each, *runs))
            case Lanes():
                raise refuse("lowering", buffer.name, "a spread of lanes", "threads on cuda", step="lower")
            case Fragment():
                extents = tuple(frame.number(extent, buffer.name) for extent in buffer.shape)
                found[buffer.name] = (*extents, _threads_of(frame, launch, buffer) // WARP)
            case None:
                found[buffer.name] = tuple(frame.number(extent, buffer.name) for extent in buffer.shape)
    return found


def _threads_of(frame: CudaFrame, launch: Launch, buffer: Buffer) -> int:
    """Return the threads of the role that holds a buffer, of the block where none does."""
    bands = bands_of(frame, launch)
    for statement in launch.body:
        if isinstance(statement, Role) and (
            statement.name == buffer.owner
            or any(isinstance(one, Declare) and one.buffer.name == buffer.name for one in walk_body(statement.body))
        ):
            return bands[statement.name].count
    return frame.team.threads


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
