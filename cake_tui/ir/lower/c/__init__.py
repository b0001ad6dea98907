"""C: a block is one task of one core, shared buffers are its local arrays, register tiles are SIMD vectors."""

from __future__ import annotations

from collections.abc import Sequence

from cake_tui.ir.expr import Number
from cake_tui.ir.lower import Lowering
from cake_tui.ir.lower.c.source import source_of
from cake_tui.ir.lower.plan import arguments_of, check_shapes, plan_of
from cake_tui.ir.lower.template import lower_template
from cake_tui.ir.opaque import Opaque
from cake_tui.ir.program import Program
from cake_tui.model.lowered import Lowered
from cake_tui.model.problem import Shape

# Products are contracted to fma, but sums keep their order and NaN stays NaN: never -ffast-math.
_OPTIONS = ("-std=gnu11", "-O3", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi")


def options_for(arch: str) -> tuple[str, ...]:
    """Return the compile options: the machine's own instructions, spelt as its architecture's compilers do."""
    native = "-march=native" if arch.startswith(("x86", "i686", "amd64")) else "-mcpu=native"
    return (*_OPTIONS[:2], native, *_OPTIONS[2:])


def lower_c(program: Program | Opaque, arch: str, shapes: Sequence[Shape]) -> Lowered:
    """Lower to C; raises Ended(Rejected) for what c lacks."""
    check_shapes({size.name: size.value for size in program.sizes}, shapes)
    if isinstance(program, Opaque):
        return lower_template(program, arch, shapes, options_for(arch))
    align = min((buffer.align or 4 for buffer in program.buffers if buffer.space == "param"), default=4)
    arguments = [arguments_of(program, at) for at in range(len(program.launches))]
    return Lowered(
        target="c",
        arch=arch,
        source=source_of(program, arguments),
        options=options_for(arch),
        plans=tuple(plan_of(program, shape, arguments) for shape in shapes),
        structure=program.structure,
        constants=tuple(
            (const.name, int(const.value.value))
            for const in program.consts
            if const.values and isinstance(const.value, Number)
        ),
        align_bytes=align,
    )


PLUGIN: Lowering = lower_c
