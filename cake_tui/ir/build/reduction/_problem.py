"""What a reduction problem says, and the statements that its structures share."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from cake_tui.errors import UserError
from cake_tui.ir import origins
from cake_tui.ir.expr import Call, Expr, ParseError, Ref, parse, rewrite, substitute
from cake_tui.ir.program import DTYPE_BYTES, Assign, Buffer, Const, Guard, Launch, Program
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import ACC, Problem

IDENTITY = {"add": "0", "max": "-inf", "min": "inf"}


class Reduction(msgspec.Struct, frozen=True):
    """``out[r] = value(map(x[r, c]) combined over c)``: names of buffers, sizes and indices."""

    problem: Problem
    dtype: str
    out: str
    rows: str  # the size R, whatever the kernel calls it
    columns: str
    r: str
    c: str
    map: Expr
    value: Expr

    @property
    def identity(self) -> Expr:
        """What changes nothing when it is combined."""
        return parse(IDENTITY[self.problem.combine])

    def mapped(self, row: Expr, column: Expr) -> Expr:
        """Return what is combined, at a row and a column."""
        return substitute(self.map, {self.r: row, self.c: column})

    def finished(self, total: Ref) -> Expr:
        """Return `value` with what was combined taken from `total`; its row index is the statement's own."""
        return rewrite(self.value, lambda node: total if isinstance(node, Ref) and node.buffer == ACC else None)

    def take(self, total: Ref, term: Expr, where: Guard | None = None) -> Assign:
        """Combine `term` into `total`."""
        if self.problem.combine == "add":
            return Assign(total, term, "+=", None, where)
        return Assign(total, Call(self.problem.combine, (total, term)), "=", None, where)

    def program(
        self,
        structure: str,
        device: Device,
        runtime_sizes: bool,
        consts: tuple[Const, ...],
        launches: tuple[Launch, ...],
        workspaces: tuple[Buffer, ...] = (),
        multiples: Mapping[str, int] = {},
    ) -> Program:
        """Put a program together from what the structure makes; buffers are aligned to their rows' `multiples`."""
        align = DTYPE_BYTES[self.dtype] * max(multiples.values(), default=1)
        return Program(
            self.problem.kernel, device.target, device.arch, origins.sizes(self.problem, runtime_sizes, multiples),
            consts, (*origins.parameters(self.problem, align), *workspaces), launches, structure,
        )  # fmt: skip


@lru_cache(maxsize=16)
def reduction_of(problem: Problem, target: Target) -> Reduction:
    """Read a problem of the family; raises UserError where the kernel's folder does not describe one."""
    first = next(spec for spec in problem.buffers if spec.role == "in")
    out = next(spec for spec in problem.buffers if spec.role != "in")
    names = [spec.name for spec in problem.buffers if spec.role == "in"]
    try:
        mapped, value = parse(problem.map, names), parse(problem.value, (*names, ACC))
    except ParseError as error:
        raise UserError(f"kernel {problem.kernel}: map or value, {error}") from None
    rows, columns = first.shape
    return Reduction(problem, first.dtype, out.name, rows, columns, rows.lower(), columns.lower(), mapped, value)
