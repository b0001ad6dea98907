"""A user's own kernel file: its knobs, and in the full build its sizes, as macros in front of the unchanged text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cake_tui.ir.lower.plan import plan_of_template
from cake_tui.ir.opaque import Opaque
from cake_tui.model.lowered import Lowered
from cake_tui.model.problem import Shape
from cake_tui.model.schedule import KnobValue


def lower_template(program: Opaque, arch: str, shapes: Sequence[Shape], options: tuple[str, ...]) -> Lowered:
    """Lower a template; see `Opaque` for how the source sees sizes."""
    asks = re.search(r"\bSIZES\b", program.source) is not None
    constant = all(size.value is not None for size in program.sizes)
    lines = [f"#define {name} {_macro(value)}" for name, value in program.knobs]
    if asks:
        if constant:
            lines += [f"#define {size.name} {size.value}" for size in program.sizes]
        passed = "" if constant else "".join(f", int {size.name}" for size in program.sizes)
        lines.append(f"#define SIZES{' ' + passed if passed else ''}")
    file = "kernel.c" if program.target == "c" else "kernel.cu"
    source = "\n".join([*lines, f'#line 1 "{file}"', program.source])
    return Lowered(
        target="c" if program.target == "c" else "cuda",
        arch=arch,
        source=source if source.endswith("\n") else source + "\n",
        options=options,
        plans=tuple(plan_of_template(program, shape, sizes_passed=not (asks and constant)) for shape in shapes),
        structure=program.structure,
        constants=program.knobs,
    )


def _macro(value: KnobValue) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
