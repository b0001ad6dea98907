"""Block per row: all threads of a block share a row and meet once, in shared memory."""

from __future__ import annotations

from collections.abc import Mapping

from cake_tui.ir.build import Structure
from cake_tui.ir.build._accesses import constants
from cake_tui.ir.build.reduction._problem import reduction_of
from cake_tui.ir.build.reduction._rows import THREADS_X, TOTAL, check_vector, multiples_of, row_knobs, turns
from cake_tui.ir.expr import Name, Number, Ref, Span, parse
from cake_tui.ir.program import WARP, Assign, Axis, Buffer, Const, Declare, Launch, Program, Reduce
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import ACC, Problem
from cake_tui.model.schedule import Knob, KnobValue

SCRATCH = "scratch"


class BlockPerRow:
    """One row a block of `threads_x` threads: best where rows are long."""

    targets = ("cuda",)

    def knobs(self, problem: Problem, target: Target, device: Device) -> tuple[Knob, ...]:
        """Return the knobs; `threads_x` in threads, `thread_n` and `vector` in elements."""
        return Knob("threads_x", THREADS_X, 256), *row_knobs(problem)

    def multiples(self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target) -> dict[str, int]:
        """Return what wide accesses need of rows."""
        return multiples_of(problem, knobs)

    def build(
        self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target, device: Device, runtime_sizes: bool
    ) -> Program:
        """Make the program; raises Ended(Rejected) where a thread takes less than a vector."""
        check_vector(knobs)
        p = reduction_of(problem, target)
        scratch = Buffer(SCRATCH, "shared", p.dtype, (Number(WARP),))  # type: ignore[arg-type]
        total = Buffer(TOTAL, "register", p.dtype, (Number(1),))  # type: ignore[arg-type]
        body = (
            Declare(scratch),
            *turns(p, Name("threads_x"), None, Number(0), parse(f"ceil({p.columns}/columns)")),
            Declare(total),
            Reduce(Ref(ACC), 0, problem.combine, Ref(TOTAL), "block", SCRATCH),  # type: ignore[arg-type]
            Assign(Ref(p.out, (Span(Name(p.r), Number(1)),)), p.finished(Ref(TOTAL))),
        )
        consts = (*constants(knobs, self.knobs(problem, target, device)), Const("columns", parse("threads_x*thread_n")))
        launch = Launch("rows", (Axis(p.r, Name(p.rows)),), body, Name("threads_x"))
        return p.program(
            "block_per_row", device, runtime_sizes, consts, (launch,), multiples=multiples_of(problem, knobs)
        )


PLUGIN: Structure = BlockPerRow()
