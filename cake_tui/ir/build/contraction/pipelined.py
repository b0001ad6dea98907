"""Pipelined: blocks of k are copied ahead into a ring of shared memory while earlier ones are multiplied."""

from __future__ import annotations

from collections.abc import Mapping

from cake_tui.ir.build import Structure
from cake_tui.ir.build.contraction._block import Block, multiples_of
from cake_tui.ir.build.contraction._problem import contraction_of
from cake_tui.ir.build.contraction._ring import ring_knobs, turns
from cake_tui.ir.expr import Name, parse
from cake_tui.ir.program import Program
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Knob, KnobValue


class Pipelined:
    """Copies that bypass the registers fill a ring of `stages` slots: with two of them, double buffering."""

    targets = ("cuda",)

    def knobs(self, problem: Problem, target: Target, device: Device) -> tuple[Knob, ...]:
        """Return the knobs; `stages` in blocks of k."""
        return ring_knobs(problem, device)

    def multiples(self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target) -> dict[str, int]:
        """Return what wide accesses need of rows."""
        return multiples_of(problem, knobs)

    def build(
        self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target, device: Device, runtime_sizes: bool
    ) -> Program:
        """Make the program; raises Ended(Rejected) for blocks of less than a warp."""
        c = contraction_of(problem, target)
        block = Block(c, knobs)
        body = (
            *block.tiles(Name("stages")),
            block.accumulator(),
            *turns(block, block.steps),
            block.finish(),
        )
        launch = block.launch("matmul", body, parse("threads_x*threads_y"))
        consts = block.constants(self.knobs(problem, target, device))
        return c.program(
            "pipelined", target, device, runtime_sizes, consts, (launch,), multiples=multiples_of(problem, knobs)
        )


PLUGIN: Structure = Pipelined()
