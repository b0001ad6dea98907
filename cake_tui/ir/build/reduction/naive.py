"""Naive: one thread adds up a row, one element after the other; on a GPU each thread has a row of its own."""

from __future__ import annotations

from collections.abc import Mapping

from cake_tui.ir.build import Structure
from cake_tui.ir.build.reduction._problem import Reduction, reduction_of
from cake_tui.ir.expr import Expr, Name, Number, Ref, Span, parse
from cake_tui.ir.program import Assign, Axis, Buffer, Declare, For, Guard, Launch, Program, Threads
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import ACC, Problem
from cake_tui.model.schedule import Knob, KnobValue

THREADS = 256


class Naive:
    """The baseline. On ``cuda`` neighbouring threads read elements a whole row apart."""

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
        p = reduction_of(problem, target)
        launch = _threads(p) if target == "cuda" else _loops(p)
        return p.program("naive", device, runtime_sizes, (), (launch,))


def _loops(p: Reduction) -> Launch:
    """Rows one after the other."""
    total = Declare(Buffer(ACC, "register", p.dtype, init=p.identity))  # type: ignore[arg-type]
    add = For(p.c, Number(0), Name(p.columns), (p.take(Ref(ACC), p.map),))
    store = Assign(Ref(p.out, (Name(p.r),)), p.finished(Ref(ACC)))
    return Launch("rows", (), (For(p.r, Number(0), Name(p.rows), (total, add, store)),))


def _threads(p: Reduction) -> Launch:
    """A thread a row."""
    held: tuple[Expr, ...] = (Number(THREADS),)
    total = Buffer(ACC, "register", p.dtype, held, spread=Threads(held, (Number(1),)), init=p.identity)  # type: ignore[arg-type]
    inside = Ref(ACC, (Span(Number(0), Number(THREADS), "row"),))
    row = parse(f"block*{THREADS} + row")
    where = Guard(parse(f"block*{THREADS} + row < {p.rows}"), p.identity)
    add = For(p.c, Number(0), Name(p.columns), (p.take(inside, p.mapped(row, Name(p.c)), where),))
    rows = Span(parse(f"block*{THREADS}"), Number(THREADS), p.r)
    store = Assign(Ref(p.out, (rows,)), p.finished(Ref(ACC)), where=Guard(parse(f"{p.r} < {p.rows}")))
    grid = (Axis("block", parse(f"ceil({p.rows}/{THREADS})")),)
    return Launch("rows", grid, (Declare(total), add, store), Number(THREADS))


PLUGIN: Structure = Naive()
