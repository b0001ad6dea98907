"""Naive: one element after the other on a CPU, a thread an element on a GPU."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cake_tui.ir.build import Structure
from cake_tui.ir.build._accesses import grid_of
from cake_tui.ir.build.elementwise._problem import Elementwise, elementwise_of
from cake_tui.ir.expr import Expr, Name, Number, Ref, Span, parse
from cake_tui.ir.program import Assign, Axis, For, Guard, Launch, Program, Statement
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Knob, KnobValue

THREADS = 256


class Naive:
    """The baseline: one load, one store, four bytes each."""

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
        p = elementwise_of(problem, target)
        launch = _threads(p) if target == "cuda" else _loops(p)
        return p.program("naive", device, runtime_sizes, (), launch)


def _loops(p: Elementwise) -> Launch:
    """One task, one thread."""
    indices: tuple[Expr, ...] = (Name(p.m), Name(p.n)) if p.m else (Name(p.n),)
    body: Statement = For(p.n, Number(0), Name(p.columns), (Assign(Ref(p.out, indices), p.value),))
    if p.m:
        body = For(p.m, Number(0), Name(p.rows), (body,))
    return Launch("elements", (), (body,))


def _threads(p: Elementwise) -> Launch:
    """A thread an element of a row."""
    columns = Span(parse(f"block*{THREADS}"), Number(THREADS), p.n)
    indices = (Name(p.m), columns) if p.m else (columns,)
    store = Assign(Ref(p.out, indices), p.value, where=Guard(parse(f"{p.n} < {p.columns}")))
    across = Axis("block", parse(f"ceil({p.columns}/{THREADS})"))
    blocks = max(math.ceil(shape[p.columns] / THREADS) for shape in p.problem.shapes)
    grid = grid_of(across, Axis(p.m, Name(p.rows)), blocks) if p.m else (across,)
    return Launch("elements", grid, (store,), Number(THREADS))


PLUGIN: Structure = Naive()
