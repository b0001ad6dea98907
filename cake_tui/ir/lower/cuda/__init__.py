"""CUDA C++: spreads are threads and their registers, hardware instructions are functions of a prelude."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from cake_tui.ir.expr import Number, evaluate_int
from cake_tui.ir.lower import Lowering
from cake_tui.ir.lower.cuda.blocks import cluster_of, grid_of
from cake_tui.ir.lower.cuda.function import Function
from cake_tui.ir.lower.cuda.renaming import legal
from cake_tui.ir.lower.cuda.source import kept_names, source_of
from cake_tui.ir.lower.heading import check_names
from cake_tui.ir.lower.plan import arguments_of, check_shapes, constants_of, plan_of
from cake_tui.ir.lower.template import lower_template
from cake_tui.ir.opaque import Opaque
from cake_tui.ir.program import DTYPE_BYTES, PTXAS, Program
from cake_tui.model.lowered import Argument, LaunchPlan, Lowered, TensorMap
from cake_tui.model.problem import Shape

# Products are contracted to fma as the language has it; never fast-math: sums keep their order and NaN stays NaN.
OPTIONS = ("-std=c++17",)
PTXAS_LEVEL = 3  # ptxas' own


def lower_cuda(program: Program | Opaque, arch: str, shapes: Sequence[Shape]) -> Lowered:
    """Lower to CUDA C++; raises Ended(Rejected) for what cuda, or this lowering, lacks."""
    check_shapes({size.name: size.value for size in program.sizes}, shapes)
    if isinstance(program, Opaque):
        return lower_template(program, arch, shapes, OPTIONS)
    align = min((buffer.align or 4 for buffer in program.buffers if buffer.space == "param"), default=4)
    arguments = [arguments_of(program, at) for at in range(len(program.launches))]
    check_names(frozenset(launch.name for launch in program.launches), kept_names(), "cuda")
    renamed, before = legal(program, kept_names())
    source, functions = source_of(renamed, [_named(given, {v: k for k, v in before.items()}) for given in arguments])
    passed = [_named(function.arguments, before) for function in functions]
    return Lowered(
        target="cuda",
        arch=arch,
        source=source,
        options=(*OPTIONS, *_ptxas(program)),
        plans=tuple(_completed(program, plan_of(program, shape, passed), functions, before) for shape in shapes),
        structure=program.structure,
        constants=tuple(
            (const.name, int(const.value.value))
            for const in program.consts
            if const.values and isinstance(const.value, Number)
        ),
        align_bytes=align,
    )


def _ptxas(program: Program) -> tuple[str, ...]:
    """Return the level at which ptxas optimises as both compilers spell it, nothing for its own."""
    levels = [const.value for const in program.consts if const.name == PTXAS and const.values]
    return tuple(
        f"--ptxas-options=-O{level.value}"
        for level in levels
        if isinstance(level, Number) and level.value != PTXAS_LEVEL
    )


def _named(arguments: Sequence[Argument], names: Mapping[str, str]) -> tuple[Argument, ...]:
    return tuple(Argument(argument.kind, names.get(argument.name, argument.name)) for argument in arguments)


def _completed(
    program: Program, plan: LaunchPlan, functions: Sequence[Function], before: Mapping[str, str]
) -> LaunchPlan:
    """Add to a plan's launches what their functions ask for."""
    names = constants_of(program, dict(plan.shape.sizes))
    launches = [
        msgspec.structs.replace(
            made,
            grid=grid_of(launch, names, function.flat),
            cluster=cluster_of(launch, names),
            block=(function.threads, 1, 1),
            smem_bytes=function.smem_bytes,
            tensor_maps=tuple(_tensor_map(program, names, one, before) for one in function.tensor_maps),
        )
        for launch, made, function in zip(program.launches, plan.launches, functions)
    ]
    return msgspec.structs.replace(plan, launches=tuple(launches))


def _tensor_map(program: Program, names: Mapping[str, int], asked: TensorMap, before: Mapping[str, str]) -> TensorMap:
    """Complete a tensor map with the extents and pitches of its buffer."""
    buffer = program.buffer(before.get(asked.buffer, asked.buffer))
    extents = [evaluate_int(extent, names) for extent in reversed(buffer.shape)]
    strides = []
    pitch = (extents[0] + evaluate_int(buffer.pad, names)) * DTYPE_BYTES[buffer.dtype]
    for extent in extents[1:]:
        strides.append(pitch)
        pitch *= extent
    return msgspec.structs.replace(asked, buffer=buffer.name, dims=tuple(extents), strides_bytes=tuple(strides))


PLUGIN: Lowering = lower_cuda
