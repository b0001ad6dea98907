"""A whole C source: one comment, the constants, what the functions need, one function a launch."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cake_tui.ir.expr import Number, Span, names_in
from cake_tui.ir.lower.c import prelude
from cake_tui.ir.lower.c.frame import CFrame
from cake_tui.ir.lower.c.needs import Needs
from cake_tui.ir.lower.c.statements import lower_body
from cake_tui.ir.lower.indices import c_int
from cake_tui.ir.lower.plan import entry_name
from cake_tui.ir.lower.writer import Writer
from cake_tui.ir.program import For, Launch, Program
from cake_tui.ir.refusal import refuse
from cake_tui.ir.walk import reads, walk, writes
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
    names = _names(program)
    _check_names(names)
    needs = Needs()
    functions = [_function(program, launch, given, names, needs) for launch, given in zip(program.launches, arguments)]
    body = "\n".join(functions)
    types = "".join(prelude.text_for(dtype, lanes, stems) for (dtype, lanes), stems in sorted(needs.functions.items()))
    helpers = prelude.whole_functions(needs.whole) + types
    used = _used(program, body)
    constants = _constants(program, used)
    text = helpers + body
    includes = "".join(
        f"#include <{name}.h>\n"
        for name, words, pattern in _HEADERS
        if any(word in text for word in words) and pattern.search(text)
    )
    parts = [f"// {_title(program, used)}\n", includes, constants, helpers, body]
    return "\n".join(part for part in parts if part)


def _title(program: Program, used: set[str]) -> str:
    inside = ", ".join(
        f"{const.name}={c_int(const.value)}" for const in program.consts if const.values and const.name in used
    )
    where = f"{program.name} for {program.arch}"
    return f"{where}: {program.structure}({inside})" if program.structure else where


def _used(program: Program, body: str) -> set[str]:
    """Return the constants and sizes that the functions name, and those that these are made of."""
    words = set(re.split(r"\W+", re.sub(r"#pragma.*", "", body)))
    for const in reversed(program.consts):
        if const.name in words:
            words |= names_in(const.value)
    return words


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


def _names(program: Program) -> frozenset[str]:
    found = {size.name for size in program.sizes} | {const.name for const in program.consts}
    found |= {buffer.name for buffer in program.buffers}
    for launch in program.launches:
        found |= {launch.name, *(axis.name for axis in launch.axes)}
    for _, statement in walk(program):
        if isinstance(statement, For):
            found.add(statement.variable)
        for ref in (*reads(statement), *writes(statement)):
            found |= {index.axis for index in ref.indices if isinstance(index, Span) and index.axis}
        buffer = getattr(statement, "buffer", None)
        if buffer is not None:
            found.add(buffer.name)
    return frozenset(found)


def _check_names(names: frozenset[str]) -> None:
    for name in sorted(names):
        if name in _KEYWORDS:
            raise refuse("lowering", name, f"the name {name}", "a name that c does not keep for itself", step="lower")
