"""CUDA C++: spreads are threads and their registers, hardware instructions are functions of a prelude."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cake_tui.ir.expr import Number
from cake_tui.ir.lower import Lowering
from cake_tui.ir.lower.cuda.function import Function
from cake_tui.ir.lower.cuda.source import source_of
from cake_tui.ir.lower.plan import arguments_of, check_shapes, plan_of
from cake_tui.ir.lower.template import lower_template
from cake_tui.ir.opaque import Opaque
from cake_tui.ir.program import Program
from cake_tui.model.lowered import Launch, LaunchPlan, Lowered
from cake_tui.model.problem import Shape

# Products are contracted to fma as the language has it; never fast-math: sums keep their order and NaN stays NaN.
OPTIONS = ("-std=c++17",)


def lower_cuda(program: Program | Opaque, arch: str, shapes: Sequence[Shape]) -> Lowered:
    """Lower to CUDA C++; raises Ended(Rejected) for what cuda, or this lowering, lacks."""
    check_shapes({size.name: size.value for size in program.sizes}, shapes)
    if isinstance(program, Opaque):
        return lower_template(program, arch, shapes, OPTIONS)
    align = min((buffer.align or 4 for buffer in program.buffers if buffer.space == "param"), default=4)
    arguments = [arguments_of(program, at) for at in range(len(program.launches))]
    source, functions = source_of(program, arguments)
    return Lowered(
        target="cuda",
        arch=arch,
        source=source,
        options=OPTIONS,
        plans=tuple(_completed(plan_of(program, shape, arguments), functions) for shape in shapes),
        structure=program.structure,
        constants=tuple(
            (const.name, int(const.value.value))
            for const in program.consts
            if const.values and isinstance(const.value, Number)
        ),
        align_bytes=align,
    )


def _completed(plan: LaunchPlan, functions: Sequence[Function]) -> LaunchPlan:
    """Add to a plan's launches what their functions ask for."""
    launches: list[Launch] = [
        msgspec.structs.replace(
            launch, block=(function.threads, 1, 1), smem_bytes=function.smem_bytes, tensor_maps=function.tensor_maps
        )
        for launch, function in zip(plan.launches, functions)
    ]
    return msgspec.structs.replace(plan, launches=tuple(launches))


PLUGIN: Lowering = lower_cuda
