"""Launch plans: grids, workspaces and ordered arguments of a program for given sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from cake_tui.ir.expr import EvaluationError, Expr, evaluate, evaluate_int
from cake_tui.ir.opaque import Opaque
from cake_tui.ir.program import DTYPE_BYTES, Buffer, Program
from cake_tui.ir.refusal import refuse
from cake_tui.ir.walk import reads, walk_body, writes
from cake_tui.model.lowered import Argument, Launch, LaunchPlan, Workspace
from cake_tui.model.problem import Shape
from cake_tui.model.schedule import KnobValue


def constants_of(program: Program, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the value of every named constant, sizes included; raises EvaluationError for one without."""
    names = dict(sizes)
    for const in program.consts:
        names[const.name] = evaluate_int(const.value, names)
    return names


def buffer_bytes(buffer: Buffer, names: Mapping[str, int]) -> int:
    """Return the bytes of a buffer, padding of each row included."""
    extents = [evaluate_int(extent, names) for extent in buffer.shape] or [1]
    extents[-1] += evaluate_int(buffer.pad, names)
    return math.prod(extents) * DTYPE_BYTES[buffer.dtype]


def arguments_of(program: Program, at: int) -> tuple[Argument, ...]:
    """Return the arguments of one launch: buffers in order of declaration, then the run-time sizes.

    Parameters that a launch does not touch are left out.
    """
    touched = set()
    for statement in walk_body(program.launches[at].body):
        touched |= {ref.buffer for ref in (*reads(statement), *writes(statement))}
    made = [
        Argument("workspace" if buffer.space == "workspace" else "buffer", buffer.name)
        for buffer in program.buffers
        if buffer.name in touched
    ]
    sizes = [Argument("size", size.name) for size in program.sizes if size.value is None]
    return (*made, *sizes)


def entry_name(launch: str) -> str:
    """Return the function's name of a launch: its own, but C keeps ``main`` for itself."""
    return "main_" if launch == "main" else launch


def plan_of(program: Program, shape: Shape, arguments: Sequence[tuple[Argument, ...]]) -> LaunchPlan:
    """Return the plan of a program for one shape, each launch with its arguments.

    Raises Ended(Rejected) where an extent is no whole number.
    """
    try:
        names = constants_of(program, dict(shape.sizes))
        launches = []
        for launch, given in zip(program.launches, arguments):
            grid = _three([evaluate_int(axis.extent, names) for axis in reversed(launch.axes)])
            launches.append(Launch(entry_name(launch.name), grid, given))
        workspaces = tuple(
            Workspace(buffer.name, buffer_bytes(buffer, names), max(buffer.align, 64))
            for buffer in program.buffers
            if buffer.space == "workspace"
        )
    except EvaluationError as error:
        raise refuse(
            "divisibility", shape.text, str(error), "sizes that the program's tiles divide", step="lower"
        ) from None
    return LaunchPlan(shape, tuple(launches), workspaces)


def plan_of_template(program: Opaque, shape: Shape, *, sizes_passed: bool) -> LaunchPlan:
    """Return the plan of a user's own kernel file for one shape."""
    names: dict[str, KnobValue] = {**dict(shape.sizes), **dict(program.knobs)}
    numbers = {name: value for name, value in names.items() if not isinstance(value, str)}

    def whole(exprs: Sequence[Expr]) -> tuple[int, int, int]:
        return _three([_floor(evaluate(expr, numbers)) for expr in exprs])

    try:
        grid, block = whole(program.grid), whole(program.block)
        smem = _floor(evaluate(program.smem_bytes, numbers))
    except EvaluationError as error:
        raise refuse("launch", "launch", str(error), "expressions over sizes and knobs", step="lower") from None
    arguments = tuple(Argument("buffer", buffer.name) for buffer in program.buffers)
    if sizes_passed:
        arguments += tuple(Argument("size", size.name) for size in program.sizes)
    return LaunchPlan(shape, (Launch(program.entry, grid, arguments, block, smem_bytes=smem),))


def check_shapes(sizes: Mapping[str, int | None], shapes: Sequence[Shape]) -> None:
    """Raise ValueError where a shape differs from the constants of a program: a caller's bug."""
    for shape in shapes:
        for name, value in shape.sizes:
            if sizes.get(name) not in (None, value):
                raise ValueError(f"{name} is the constant {sizes[name]}, the shape has {value}")


def _floor(value: int | float) -> int:
    if not math.isfinite(value):
        raise EvaluationError(f"{value} is no number of blocks, threads or bytes")
    return int(value)


def _three(extents: list[int]) -> tuple[int, int, int]:
    if len(extents) > 3 or any(extent < 1 for extent in extents):
        raise EvaluationError(f"a grid of {' x '.join(str(extent) for extent in extents)}")
    x, y, z = [*extents, 1, 1, 1][:3]
    return x, y, z
