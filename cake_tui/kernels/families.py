"""What each family asks of kernel.toml: its expressions, and buffers that fit them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cake_tui.ir.expr import Number, Ref, names_in, refs_in, rewrite, show_ref
from cake_tui.kernels.expressions import read_expression
from cake_tui.model.problem import ACC, COMBINES, BufferSpec, Problem
from cake_tui.toml import Table, shown

OF_REDUCTIONS = ("map", "combine")
MOST_AXES = 2  # of what an elementwise kernel writes


class Expressions(NamedTuple):
    """What is computed: `value` gives the output; a reduction also says what it combines, and how."""

    value: str = ""
    map: str = ""
    combine: str = ""


def read_expressions(
    table: Table, family: str | None, buffers: Sequence[BufferSpec], parent: Problem | None
) -> Expressions:
    """Read a family's expressions and check its buffers; indices are the extents in lower case."""
    if parent is not None:
        return Expressions(table.text("value") or parent.value, parent.map, parent.combine)
    reduces = family == "reduction"
    required = family is not None and not reduces and "reference" not in table.value
    value = table.text("value", required=required) or (ACC if reduces else "")
    mapped = (table.text("map", required=True) or "") if reduces else ""
    combine = (table.choice("combine", COMBINES, COMBINES[0]) or "") if reduces else ""
    found = Expressions(value, mapped, combine)
    outputs = [buffer for buffer in buffers if buffer.role != "in"]
    if not value or not outputs:
        return found
    rows = _indices(outputs[0])
    names = (*([ACC] if family in ("contraction", "reduction") else []), *rows)
    inside = [index for buffer in buffers for index in _indices(buffer)] if reduces else []
    good = _fits(table, "value", value, names, buffers)
    if mapped:
        good = _fits(table, "map", mapped, (*rows, *inside), buffers) and good
    if good:
        _check_buffers(table, family, buffers, outputs)
    return found


def _fits(table: Table, key: str, text: str, names: Sequence[str], buffers: Sequence[BufferSpec]) -> bool:
    """Read an expression; each buffer is read at its own axes, and an index has no value of its own."""
    read = [buffer for buffer in buffers if buffer.role != "out"]
    found = read_expression(
        table, (key,), text, tuple(dict.fromkeys(names)), {buffer.name: len(buffer.shape) for buffer in read}
    )
    if found is None:
        return False
    axes = {buffer.name: _indices(buffer) for buffer in read}
    for ref in refs_in(found):
        own = f"{ref.buffer}[{', '.join(axes[ref.buffer])}]"
        strange = [axis for axis in axes[ref.buffer] if axis not in names]
        if strange or show_ref(ref) != own:
            why = f"{strange[0]} is no axis here" if strange else f"allowed: {own}, at its own axes"
            table.mistake((key,), f"{shown(text)}: found {show_ref(ref)}; {why}")
            return False
    alone = names_in(rewrite(found, lambda node: Number(0) if type(node) is Ref else None)) - {ACC}
    if alone:
        table.mistake((key,), f"{shown(text)}: {min(alone)} is an index; it stands inside of [ ] only")
    return not alone


def _indices(buffer: BufferSpec) -> list[str]:
    return [extent.strip().lower() for extent in buffer.shape]


def _check_buffers(
    table: Table, family: str | None, buffers: Sequence[BufferSpec], outputs: Sequence[BufferSpec]
) -> None:
    match family:
        case "contraction":
            _check_contraction(table, buffers, outputs)
        case "reduction":
            _check_reduction(table, buffers, outputs)
        case "elementwise":
            _check_elementwise(table, buffers, outputs)


def _check_contraction(table: Table, buffers: Sequence[BufferSpec], outputs: Sequence[BufferSpec]) -> None:
    """The first two inputs are the factors, [M, K] and [K, N]; the output is [M, N]; all others are read in `value`."""
    inputs = [buffer for buffer in buffers if buffer.role == "in"]
    if len(outputs) != 1 or len(inputs) < 2:
        table.mistake(
            ("buffers",), f"a contraction has two factors and one output, not {len(inputs)} and {len(outputs)}"
        )
        return
    a, b, y = inputs[0], inputs[1], outputs[0]
    fits = len(a.shape) == len(b.shape) == len(y.shape) == 2
    if not fits or (a.shape[0], b.shape[1], a.shape[1]) != (*y.shape, b.shape[0]) or len({*a.shape, *b.shape}) != 3:
        table.mistake(("buffers",), f"found {_shown(a, b, y)}; a contraction is a[M, K], b[K, N] and an output [M, N]")
    if (a.name, b.name) != ("a", "b"):
        table.mistake(
            ("buffers",), f"found the factors {a.name} and {b.name}; a contraction's first two buffers are a and b"
        )
    _check_dtypes(table, buffers, "a contraction")


def _check_reduction(table: Table, buffers: Sequence[BufferSpec], outputs: Sequence[BufferSpec]) -> None:
    """The first input is [R, C], the output [R]; all others are [R], [C] or [R, C]."""
    inputs = [buffer for buffer in buffers if buffer.role == "in"]
    if len(outputs) != 1 or not inputs or outputs[0].role != "out":
        table.mistake(("buffers",), f"a reduction has inputs and one output, not {len(inputs)} and {len(outputs)}")
        return
    x, y = inputs[0], outputs[0]
    if len(x.shape) != 2 or list(y.shape) != list(x.shape[:1]) or len(set(x.shape)) != 2:
        table.mistake(("buffers",), f"found {_shown(x, y)}; a reduction is x[R, C] and an output [R]")
    _check_axes(table, inputs, x, "a reduction")
    _check_dtypes(table, buffers, "a reduction")


def _check_elementwise(table: Table, buffers: Sequence[BufferSpec], outputs: Sequence[BufferSpec]) -> None:
    """The output has one or two axes, and so have all inputs, out of the same ones in the same order."""
    inputs = [buffer for buffer in buffers if buffer.role == "in"]
    if len(outputs) != 1 or not inputs or outputs[0].role != "out":
        found = f"{len(inputs)} and {len(outputs)}"
        table.mistake(("buffers",), f"an elementwise kernel has inputs and one output, not {found}")
        return
    y = outputs[0]
    if len(y.shape) > MOST_AXES or len(set(y.shape)) != len(y.shape):
        table.mistake(("buffers",), f"found {_shown(y)}; an elementwise kernel writes [N], or [M, N]")
    _check_axes(table, inputs, y, "an elementwise kernel")
    _check_dtypes(table, buffers, "an elementwise kernel")


def _check_axes(table: Table, inputs: Sequence[BufferSpec], whole: BufferSpec, what: str) -> None:
    for buffer in inputs:
        if [axis for axis in whole.shape if axis in buffer.shape] != list(buffer.shape):
            allowed = ", ".join(whole.shape)
            table.mistake(("buffers",), f"found {_shown(buffer)}; {what} reads axes out of [{allowed}], in this order")


def _check_dtypes(table: Table, buffers: Sequence[BufferSpec], what: str) -> None:
    dtypes = sorted({buffer.dtype for buffer in buffers})
    if dtypes not in (["f32"], ["f64"]):
        table.mistake(("buffers",), f"found {' and '.join(dtypes)}; {what} has f32 in all buffers, or f64 in all")


def _shown(*buffers: BufferSpec) -> str:
    return ", ".join(f"{buffer.name}[{', '.join(buffer.shape)}]" for buffer in buffers)
