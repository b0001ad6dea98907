"""Split rows: blocks also share out the columns of a row; a second launch combines what they found."""

from __future__ import annotations

from collections.abc import Mapping

from cake_tui.ir.build import Structure
from cake_tui.ir.build._accesses import constants
from cake_tui.ir.build.reduction._problem import Reduction, reduction_of
from cake_tui.ir.build.reduction._rows import PART, THREADS_X, TOTAL, check_vector, multiples_of, row_knobs, turns
from cake_tui.ir.expr import Expr, Name, Number, Ref, Span, parse
from cake_tui.ir.program import WARP, Assign, Axis, Buffer, Const, Declare, For, Guard, Launch, Program, Reduce, Threads
from cake_tui.ir.refusal import refuse
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import ACC, Problem
from cake_tui.model.schedule import Knob, KnobValue

SCRATCH, PARTIAL = "scratch", "partial"
COMBINING = 256  # threads of a block that combines parts, a row each


class SplitRows:
    """`split_k` parts of each row, in a workspace: worth it where a few long rows leave most of the device idle."""

    targets = ("cuda",)

    def knobs(self, problem: Problem, target: Target, device: Device) -> tuple[Knob, ...]:
        """Return the knobs; `split_k` in parts of a row, `threads_x` in threads of the block that has a part."""
        return Knob("threads_x", THREADS_X, 256), *row_knobs(problem, 2), Knob("split_k", (2, 4, 8, 16, 32, 64), 2)

    def multiples(self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target) -> dict[str, int]:
        """Return what wide accesses need of rows."""
        return multiples_of(problem, knobs)

    def build(
        self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target, device: Device, runtime_sizes: bool
    ) -> Program:
        """Make the program; raises Ended(Rejected) where terms must stay in order or no whole vector is taken."""
        if problem.accumulation == "ordered":
            raise refuse("accumulation", "accumulation", "ordered", "blocked or any: parts are combined", step="build")
        check_vector(knobs)
        p = reduction_of(problem, target)
        partial = Buffer(PARTIAL, "workspace", p.dtype, (Name(p.rows), Name("split_k")))  # type: ignore[arg-type]
        consts = (*constants(knobs, self.knobs(problem, target, device)), Const("columns", parse("threads_x*thread_n")))
        return p.program(
            "split_rows", device, runtime_sizes, consts, (_parts(p), _combined(p)), (partial,),
            multiples_of(problem, knobs),
        )  # fmt: skip


def _parts(p: Reduction) -> Launch:
    """Make the first launch: a block a part of a row."""
    each = f"ceil(ceil({p.columns}/columns)/split_k)"
    stop = parse(f"min((piece + 1)*{each}, ceil({p.columns}/columns))")
    scratch = Buffer(SCRATCH, "shared", p.dtype, (Number(WARP),))  # type: ignore[arg-type]
    total = Buffer(TOTAL, "register", p.dtype, (Number(1),))  # type: ignore[arg-type]
    body = (
        Declare(scratch),
        *turns(p, Name("threads_x"), None, parse(f"piece*{each}"), stop),
        Declare(total),
        Reduce(Ref(ACC), 0, p.problem.combine, Ref(TOTAL), "block", SCRATCH),  # type: ignore[arg-type]
        Assign(Ref(PARTIAL, (Name(p.r), Span(Name("piece"), Number(1)))), Ref(TOTAL)),
    )
    return Launch("rows", (Axis("piece", Name("split_k")), Axis(p.r, Name(p.rows))), body, Name("threads_x"))


def _combined(p: Reduction) -> Launch:
    """Make the second launch: a thread a row, part after part."""
    held: tuple[Expr, ...] = (Number(COMBINING),)
    spread = Threads(held, (Number(1),))
    total = Buffer(ACC, "register", p.dtype, held, spread=spread, init=p.identity)  # type: ignore[arg-type]
    part = Buffer(PART, "register", p.dtype, held, spread=spread)  # type: ignore[arg-type]
    place = Ref(PARTIAL, (parse(f"block*{COMBINING} + row"), Name("piece")))
    where = Guard(parse(f"block*{COMBINING} + row < {p.rows}"), p.identity)
    read = Assign(Ref(PART, (Span(Number(0), Number(COMBINING), "row"),)), place, where=where)
    add = For("piece", Number(0), Name("split_k"), (Declare(part), read, p.take(Ref(ACC), Ref(PART))))
    rows = Span(parse(f"block*{COMBINING}"), Number(COMBINING), p.r)
    store = Assign(Ref(p.out, (rows,)), p.finished(Ref(ACC)), where=Guard(parse(f"{p.r} < {p.rows}")))
    grid = (Axis("block", parse(f"ceil({p.rows}/{COMBINING})")),)
    return Launch("combine", grid, (Declare(total), add, store), Number(COMBINING))


PLUGIN: Structure = SplitRows()
