"""A whole CUDA source: one comment, the constants, the prelude's functions that it calls, one function a launch."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cake_tui.ir.expr import names_in
from cake_tui.ir.lower.cuda import prelude
from cake_tui.ir.lower.cuda.function import Function, function_of
from cake_tui.ir.lower.heading import names_of, title_of, used_in
from cake_tui.ir.lower.indices import c_int
from cake_tui.ir.program import PTXAS, Program
from cake_tui.model.lowered import Argument

KERNEL = "// --- kernel ---\n"
KEYWORDS = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr
    const_cast continue decltype default delete do double dynamic_cast else enum explicit export extern false float for
    friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected
    public register reinterpret_cast return short signed sizeof static static_assert static_cast struct switch template
    this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while
    xor xor_eq threadIdx blockIdx blockDim gridDim warpSize thread warp lane tile shared_memory linux unix""".split()  # noqa: SIM905 - reads as the list it is
)


def kept_names() -> frozenset[str]:
    """Return the names that the language, and the source itself, keep."""
    return KEYWORDS | prelude.names()


def source_of(program: Program, arguments: Sequence[tuple[Argument, ...]]) -> tuple[str, tuple[Function, ...]]:
    """Return the source of a program and its functions; raises Ended(Rejected) for what cuda lacks."""
    names = names_of(program)
    functions = tuple(function_of(program, at, given, names) for at, given in enumerate(arguments))
    body = "\n".join(function.text for function in functions)
    extra = dict(constant for function in functions for constant in function.constants)
    used = used_in(program, f"{body} {' '.join(extra.values())}")
    constants = _constants(program, used, {name: text for name, text in extra.items() if _named(name, body)})
    helpers = prelude.text_for(constants + body)
    parts = [f"// {title_of(program, used | {PTXAS})}\n", constants, helpers, KERNEL + body if helpers else body]
    return "\n".join(part for part in parts if part), functions


def _named(name: str, body: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", body) is not None


def _constants(program: Program, used: set[str], extra: dict[str, str]) -> str:
    """Return the constants; those that depend on sizes known only at run time stand in the functions."""
    late = {size.name for size in program.sizes if size.value is None}
    lines = [f"constexpr int {size.name} = {size.value};" for size in program.sizes if size.name in used - late]
    for const in program.consts:
        if names_in(const.value) & late:
            late.add(const.name)
        elif const.name in used:
            lines.append(f"constexpr int {const.name} = {c_int(const.value)};")
    lines += [f"constexpr int {name} = {text};" for name, text in extra.items()]
    return "\n".join(lines) + "\n" if lines else ""
