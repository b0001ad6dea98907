"""Warp per row: a warp or a part of it shares a row and combines it by itself; no barrier, no shared memory."""

from __future__ import annotations

from collections.abc import Mapping

from cake_tui.ir.build import Structure
from cake_tui.ir.build._accesses import constants
from cake_tui.ir.build.reduction._problem import reduction_of
from cake_tui.ir.build.reduction._rows import TOTAL, check_vector, multiples_of, row_knobs, turns
from cake_tui.ir.expr import Name, Number, Ref, Span, parse
from cake_tui.ir.program import Assign, Axis, Buffer, Const, Declare, Guard, Launch, Program, Reduce, Threads
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import ACC, Problem
from cake_tui.model.schedule import Knob, KnobValue


class WarpPerRow:
    """A block takes `threads_y` rows, `threads_x` threads each: best where rows are short or there are many of them."""

    targets = ("cuda",)

    def knobs(self, problem: Problem, target: Target, device: Device) -> tuple[Knob, ...]:
        """Return the knobs; `threads_x` in threads of a row, `threads_y` in rows, the others in elements."""
        sides = Knob("threads_x", (4, 8, 16, 32), 32), Knob("threads_y", (1, 2, 4, 8, 16, 32), 8)
        return *sides, *row_knobs(problem)

    def multiples(self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target) -> dict[str, int]:
        """Return what wide accesses need of rows."""
        return multiples_of(problem, knobs)

    def build(
        self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target, device: Device, runtime_sizes: bool
    ) -> Program:
        """Make the program; raises Ended(Rejected) where a thread takes less than a vector."""
        check_vector(knobs)
        p = reduction_of(problem, target)
        threads_y = Name("threads_y")
        total = Buffer(TOTAL, "register", p.dtype, (threads_y,), spread=Threads((threads_y,), (Number(1),)))  # type: ignore[arg-type]
        rows = Span(parse("block*threads_y"), threads_y, p.r)
        body = (
            *turns(p, Name("threads_x"), threads_y, Number(0), parse(f"ceil({p.columns}/columns)")),
            Declare(total),
            Reduce(Ref(ACC), 1, problem.combine, Ref(TOTAL), "warp"),  # type: ignore[arg-type]
            Assign(Ref(p.out, (rows,)), p.finished(Ref(TOTAL)), where=Guard(parse(f"{p.r} < {p.rows}"))),
        )
        consts = (
            *constants(knobs, self.knobs(problem, target, device)), Const("columns", parse("threads_x*thread_n"))
        )  # fmt: skip
        grid = (Axis("block", parse(f"ceil({p.rows}/threads_y)")),)
        launch = Launch("rows", grid, body, parse("threads_x*threads_y"))
        return p.program(
            "warp_per_row", device, runtime_sizes, consts, (launch,), multiples=multiples_of(problem, knobs)
        )


PLUGIN: Structure = WarpPerRow()
