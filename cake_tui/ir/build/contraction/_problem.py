"""What a contraction problem says: its operands, sizes, index names and the value of each output element."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from cake_tui.errors import UserError
from cake_tui.ir import origins
from cake_tui.ir.expr import Expr, ParseError, Ref, Span, names_in, parse, refs_in, rewrite
from cake_tui.ir.program import DTYPE_BYTES, Buffer, Const, Launch, Program
from cake_tui.ir.refusal import refuse
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import ACC, BufferSpec, Problem

_FLOATS = {"c": ("f32", "f64"), "cuda": ("f32", "f64")}


class Contraction(msgspec.Struct, frozen=True):
    """``out[m, n] = value(sum over k of a[m, k]*b[k, n])``: names of buffers, sizes and indices."""

    problem: Problem
    dtype: str
    out: str
    rows: str  # the size M, whatever the kernel calls it
    columns: str
    depth: str
    m: str
    n: str
    k: str
    value: Expr

    def outputs(self, rows: Span | Expr, columns: Span) -> Ref:
        """Return the reference to a tile of the output."""
        return Ref(self.out, (rows, columns))

    def program(
        self,
        structure: str,
        target: Target,
        device: Device,
        runtime_sizes: bool,
        consts: tuple[Const, ...],
        launches: tuple[Launch, ...],
        workspaces: tuple[Buffer, ...] = (),
        *,
        multiples: Mapping[str, int] = {},
    ) -> Program:
        """Put a program together from what the structure makes; buffers are aligned to their rows' `multiples`."""
        align = DTYPE_BYTES[self.dtype] * max(multiples.values()) if multiples else 4
        return Program(
            self.problem.kernel, target, device.arch, origins.sizes(self.problem, runtime_sizes, multiples), consts,
            (*origins.parameters(self.problem, align), *workspaces), launches, structure,
        )  # fmt: skip


@lru_cache(maxsize=16)
def contraction_of(problem: Problem, target: Target) -> Contraction:
    """Read a problem of the family; raises UserError where the kernel's folder does not describe one."""
    specs = {spec.name: spec for spec in problem.buffers}
    outs = [spec for spec in problem.buffers if spec.role != "in"]
    where = f"kernel {problem.kernel}"
    if "a" not in specs or "b" not in specs or len(outs) != 1:
        raise UserError(f"{where}: a contraction has buffers a and b and one output; found {', '.join(specs)}")
    rows, depth = _axes(specs["a"], where)
    inner, columns = _axes(specs["b"], where)
    if inner != depth or _axes(outs[0], where) != (rows, columns):
        raise UserError(
            f"{where}: a[{rows}, {depth}] times b[{inner}, {columns}] gives no {outs[0].name}"
            f"[{', '.join(outs[0].shape)}]; shapes must read [M, K], [K, N] and [M, N]"
        )
    dtypes = {spec.dtype for spec in problem.buffers}
    if len(dtypes) > 1 or not dtypes <= set(_FLOATS[target]):
        raise refuse(
            "dtypes", "dtype", " and ".join(sorted(dtypes)),
            f"one of {' '.join(_FLOATS[target])} for all buffers on {target}", step="build",
        )  # fmt: skip
    m, n, k = rows.lower(), columns.lower(), depth.lower()
    value = _value(problem, frozenset([m, n, *problem.size_names]), frozenset(specs) - {outs[0].name}, where)
    return Contraction(problem, outs[0].dtype, outs[0].name, rows, columns, depth, m, n, k, value)


def _axes(spec: BufferSpec, where: str) -> tuple[str, str]:
    if len(spec.shape) != 2 or not all(axis.isidentifier() for axis in spec.shape):
        raise UserError(
            f"{where}: buffer {spec.name} has shape [{', '.join(spec.shape)}]; a contraction needs two sizes"
        )
    return spec.shape[0], spec.shape[1]


def _value(problem: Problem, names: frozenset[str], buffers: frozenset[str], where: str) -> Expr:
    try:
        value = parse(problem.value, buffers | {ACC})
    except ParseError as error:
        raise UserError(f"{where}: value, {error}") from None
    wrong = sorted(names_in(value) - names) + sorted({ref.buffer for ref in refs_in(value)} - buffers - {ACC})
    if wrong:
        known = ", ".join(sorted(names | buffers | {ACC}))
        raise UserError(f"{where}: value uses {wrong[0]}, which is not there; known: {known}")
    return value


def at_element(value: Expr, acc: Ref) -> Expr:
    """Return `value` with the sum taken from `acc`."""
    return rewrite(value, lambda node: acc if isinstance(node, Ref) and node.buffer == ACC else None)
