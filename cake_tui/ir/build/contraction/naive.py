"""Naive: the three loops i-j-k of one thread on a CPU, a thread an output element on a GPU; nothing is reused."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cake_tui.ir.build import Structure
from cake_tui.ir.build._accesses import grid_of
from cake_tui.ir.build.contraction._problem import Contraction, at_element, contraction_of
from cake_tui.ir.expr import Binary, Expr, Name, Number, Ref, Span, parse
from cake_tui.ir.program import (
    Assign,
    Axis,
    Buffer,
    Const,
    Contract,
    Declare,
    For,
    Guard,
    Launch,
    Program,
    Threads,
)
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import ACC, Problem
from cake_tui.model.schedule import Knob, KnobValue

ROWS, COLUMNS = 32, 8  # of a block: a warp's threads share no row


class Naive:
    """The baseline: what a person writes first.

    On ``cuda`` a thread an output element, x of the block along the rows, so that neighbouring threads read and write
    elements a whole row apart: the uncoalesced kernel that everything is compared with.
    """

    targets = ("c", "cuda")

    def knobs(self, problem: Problem, target: Target, device: Device) -> tuple[Knob, ...]:
        """Return none: there is nothing to set."""
        return ()

    def multiples(self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target) -> dict[str, int]:
        """Return none: any size will do."""
        return {}

    def build(
        self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target, device: Device, runtime_sizes: bool
    ) -> Program:
        """Make the program."""
        c = contraction_of(problem, target)
        if target == "cuda":
            consts = Const("block_rows", Number(ROWS)), Const("block_columns", Number(COLUMNS))
            return c.program("naive", target, device, runtime_sizes, consts, (_threads(c),))
        return c.program("naive", target, device, runtime_sizes, (), (_loops(c),))


def _loops(c: Contraction) -> Launch:
    """One task, one thread, i-j-k."""
    m, n, k = Name(c.m), Name(c.n), Name(c.k)
    product = Binary("*", Ref("a", (m, k)), Ref("b", (k, n)))
    element = (
        Declare(Buffer(ACC, "register", c.dtype, init=Number(0))),  # type: ignore[arg-type]
        For(c.k, Number(0), Name(c.depth), (Assign(Ref(ACC), product, "+="),)),
        Assign(Ref(c.out, (m, n)), at_element(c.value, Ref(ACC))),
    )
    rows = For(c.m, Number(0), Name(c.rows), (For(c.n, Number(0), Name(c.columns), element),))
    return Launch("matmul", (), (rows,))


def _threads(c: Contraction) -> Launch:
    """A thread an element, numbered down the columns of the output."""
    rows = Span(parse("bm*block_rows"), Name("block_rows"), c.m)
    columns = Span(parse("bn*block_columns"), Name("block_columns"), c.n)
    inside = parse(f"{c.m} < {c.rows} and {c.n} < {c.columns}")
    spread = Threads((Name("block_rows"), Name("block_columns")), (Number(1), Number(1)))
    shape: tuple[Expr, ...] = (Name("block_rows"), Name("block_columns"))
    acc = Buffer(ACC, "register", c.dtype, shape, order=(1, 0), spread=spread, init=Number(0))  # type: ignore[arg-type]
    product = Contract(
        Ref(ACC), Ref("a", (rows, Name(c.k))), Ref("b", (Name(c.k), columns)), where=Guard(inside, Number(0))
    )
    store = Assign(c.outputs(rows, columns), at_element(c.value, Ref(ACC)), where=Guard(inside))
    down, across = (
        Axis("bm", parse(f"ceil({c.rows}/block_rows)")),
        Axis("bn", parse(f"ceil({c.columns}/block_columns)")),
    )
    grid = grid_of(across, down, max(math.ceil(shape[c.columns] / COLUMNS) for shape in c.problem.shapes))
    body = (Declare(acc), For(c.k, Number(0), Name(c.depth), (product,)), store)
    return Launch("matmul", grid, body, parse("block_rows*block_columns"))


PLUGIN: Structure = Naive()
