"""What an elementwise problem says: its output, one or two axes of it, and the value of each element."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from cake_tui.errors import UserError
from cake_tui.ir import origins
from cake_tui.ir.expr import Expr, ParseError, Ref, parse, substitute
from cake_tui.ir.program import DTYPE_BYTES, Const, Launch, Program
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import Problem


class Elementwise(msgspec.Struct, frozen=True):
    """``out[m, n] = value``, or ``out[n] = value`` with `rows` and `m` empty: names of sizes and indices."""

    problem: Problem
    dtype: str
    out: str
    rows: str  # the size M, whatever the kernel calls it
    columns: str
    m: str
    n: str
    value: Expr

    def at(self, row: Expr, column: Expr) -> Expr:
        """Return the value at a row and a column; without rows the row is not looked at."""
        return substitute(self.value, {self.n: column, **({self.m: row} if self.m else {})})

    def place(self, row: Ref | Expr, column: Expr) -> Ref:
        """Return one element of the output."""
        return Ref(self.out, (row, column) if self.m else (column,))

    def program(
        self,
        structure: str,
        device: Device,
        runtime_sizes: bool,
        consts: tuple[Const, ...],
        launch: Launch,
        multiples: Mapping[str, int] = {},
    ) -> Program:
        """Put a program together from what the structure makes; buffers are aligned to their rows' `multiples`."""
        align = DTYPE_BYTES[self.dtype] * max(multiples.values(), default=1)
        return Program(
            self.problem.kernel, device.target, device.arch, origins.sizes(self.problem, runtime_sizes, multiples),
            consts, origins.parameters(self.problem, align), (launch,), structure,
        )  # fmt: skip


@lru_cache(maxsize=16)
def elementwise_of(problem: Problem, target: Target) -> Elementwise:
    """Read a problem of the family; raises UserError where the kernel's folder does not describe one."""
    out = next(spec for spec in problem.buffers if spec.role != "in")
    names = [spec.name for spec in problem.buffers if spec.role == "in"]
    try:
        value = parse(problem.value, names)
    except ParseError as error:
        raise UserError(f"kernel {problem.kernel}: value, {error}") from None
    rows, columns = ("", *out.shape)[-2:]
    return Elementwise(problem, out.dtype, out.name, rows, columns, rows.lower(), columns.lower(), value)
