"""A whole C source: one comment, the constants, what the functions need, one function a launch."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cake_tui.ir.expr import Number
from cake_tui.ir.lower.c import prelude
from cake_tui.ir.lower.c.frame import CFrame
from cake_tui.ir.lower.c.needs import Needs
from cake_tui.ir.lower.c.statements import lower_body
from cake_tui.ir.lower.heading import check_names, names_of, title_of, used_in
from cake_tui.ir.lower.indices import c_int
from cake_tui.ir.lower.plan import entry_name
from cake_tui.ir.lower.writer import Writer
from cake_tui.ir.program import Launch, Program
from cake_tui.ir.refusal import refuse
from cake_tui.model.lowered import Argument

_KEYWORDS = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
    task ceil_div least most memcpy linux unix asm typeof INFINITY""".split()  # noqa: SIM905 - reads as the list it is
)
# Each header with words of which its pattern needs one: asking for those first is quicker than the pattern.
_HEADERS = (
    (
        "math",
        ("INFINITY", "exp", "log", "tanh", "erf", "sin", "cos", "floor", "ceil(", "ceilf(", "sqrt", "fabs", "pow"),
        re.compile(r"\bINFINITY\b|\b(?:exp|log|tanh|erf|erfc|sin|cos|floor|ceil|sqrt|fabs|pow)f?\("),
    ),
    ("string", ("memcpy",), re.compile(r"\bmemcpy\(")),
)


def source_of(program: Program, arguments: Sequence[tuple[Argument, ...]]) -> str:
    """Return the C source of a program, its functions with these arguments; raises Ended(Rejected) for what c lacks."""
    names = names_of(program)
    check_names(names, _KEYWORDS, "c")
    needs = Needs()
    functions = [_function(program, launch, given, names, needs) for launch, given in zip(program.launches, arguments)]
    body = "\n".join(functions)
    types = "".join(prelude.text_for(dtype, lanes, stems) for (dtype, lanes), stems in sorted(needs.functions.items()))
    helpers = prelude.whole_functions(needs.whole) + types
    used = used_in(program, body)
    constants = _constants(program, used)
    text = helpers + body
    includes = "".join(
        f"#include <{name}.h>\n"
        for name, words, pattern in _HEADERS
        if any(word in text for word in words) and pattern.search(text)
    )
    parts = [f"// {title_of(program, used)}\n", includes, constants, helpers, body]
    return "\n".join(part for part in parts if part)


def _constants(program: Program, used: set[str]) -> str:
    lines = [f"  {size.name} = {size.value}," for size in program.sizes if size.value is not None and size.name in used]
    lines += [f"  {const.name} = {c_int(const.value)}," for const in program.consts if const.name in used]
    return "enum {\n" + "\n".join(lines) + "\n};\n" if lines else ""


def _function(
    program: Program, launch: Launch, arguments: tuple[Argument, ...], names: frozenset[str], needs: Needs
) -> str:
    if launch.persistent is not None or launch.cluster or launch.order != "row" or launch.threads != Number(1):
        raise refuse(
            "lowering", launch.name, "a launch for another target", "a plain grid of one thread on c", step="lower"
        )
    if len(launch.axes) > 3:
        raise refuse("lowering", launch.name, f"{len(launch.axes)} grid axes", "at most 3", step="lower")
    writer = Writer()
    frame = CFrame(program, needs, writer, names)
    for place, axis in enumerate(reversed(launch.axes)):
        one = frame.proofs.number(axis.extent) == 1
        if one:
            frame.replace(axis.name, Number(0))
        else:
            frame.declare(axis.name, Number(0), axis.extent)
            writer.line(f"const long {axis.name} = task[{place}];")
    lower_body(frame, launch.body)
    if not any("task[" in line for line in writer.lines):
        writer.lines.insert(0, "  (void)task;")
    head = Writer()
    head.depth = 0
    head.line(f"void {entry_name(launch.name)}({_parameters(program, arguments)}) {{")
    return "\n".join([*head.lines, *writer.lines]) + "\n}\n"


def _parameters(program: Program, arguments: tuple[Argument, ...]) -> str:
    texts = ["const int task[3]"]
    for argument in arguments:
        if argument.kind == "size":
            texts.append(f"int {argument.name}")
            continue
        buffer = program.buffer(argument.name)
        if buffer.dtype not in prelude.ELEMENTS:
            raise refuse(
                "lowering", buffer.name, buffer.dtype, f"one of {' '.join(prelude.ELEMENTS)} on c", step="lower"
            )
        constant = "const " if buffer.space == "param" and buffer.access == "in" else ""
        texts.append(f"{constant}{prelude.ELEMENTS[buffer.dtype]} *restrict {buffer.name}")
    return ", ".join(texts)
