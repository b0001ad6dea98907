"""Naive: one task, one thread, the three loops i-j-k, one element at a time."""

from __future__ import annotations

from collections.abc import Mapping

from cake_tui.ir.build import Structure
from cake_tui.ir.build.contraction._problem import ACC, at_element, contraction_of
from cake_tui.ir.expr import Binary, Name, Number, Ref
from cake_tui.ir.program import Assign, Buffer, Declare, For, Launch, Program
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Knob, KnobValue


class Naive:
    """The baseline: what a person writes first."""

    targets = ("c",)

    def knobs(self, problem: Problem, target: Target, device: Device) -> tuple[Knob, ...]:
        """Return none: there is nothing to set."""
        return ()

    def multiples(self, problem: Problem, knobs: Mapping[str, KnobValue]) -> dict[str, int]:
        """Return none: any size will do."""
        return {}

    def build(
        self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target, device: Device, runtime_sizes: bool
    ) -> Program:
        """Make the program."""
        c = contraction_of(problem, target)
        m, n, k = Name(c.m), Name(c.n), Name(c.k)
        product = Binary("*", Ref("a", (m, k)), Ref("b", (k, n)))
        element = (
            Declare(Buffer(ACC, "register", c.dtype, init=Number(0))),  # type: ignore[arg-type]
            For(c.k, Number(0), Name(c.depth), (Assign(Ref(ACC), product, "+="),)),
            Assign(Ref(c.out, (m, n)), at_element(c.value, Ref(ACC))),
        )
        rows = For(c.m, Number(0), Name(c.rows), (For(c.n, Number(0), Name(c.columns), element),))
        return c.program("naive", target, device, runtime_sizes, (), (Launch("matmul", (), (rows,)),))


PLUGIN: Structure = Naive()
