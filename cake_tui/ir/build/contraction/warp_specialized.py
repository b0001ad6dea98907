"""Warp-specialised: loader warps fill a ring of shared memory, compute warps multiply; phase barriers join them."""

from __future__ import annotations

from collections.abc import Mapping

from cake_tui.ir.build import Structure
from cake_tui.ir.build.contraction._block import Block, multiples_of
from cake_tui.ir.build.contraction._problem import contraction_of
from cake_tui.ir.build.contraction._ring import arrive, multiply, ring_knobs
from cake_tui.ir.expr import Name, Number, parse
from cake_tui.ir.program import Arrive, Barrier, Completion, For, Program, Role, Statement, Wait, WarpRole
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Knob, KnobValue

FULL, FREE = "full", "free"


class WarpSpecialized:
    """`loaders` warps copy ahead by `stages` slots while the others multiply; no thread waits for all of the block.

    A slot is `full` with the copies of all loaders, and `free` with one arrival a compute warp.
    """

    targets = ("cuda",)

    def knobs(self, problem: Problem, target: Target, device: Device) -> tuple[Knob, ...]:
        """Return the knobs; `loaders` in warps, `stages` in blocks of k."""
        return *ring_knobs(problem, device), Knob("loaders", (1, 2, 4, 8), 4)

    def multiples(self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target) -> dict[str, int]:
        """Return what wide accesses need of rows."""
        return multiples_of(problem, knobs)

    def build(
        self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target, device: Device, runtime_sizes: bool
    ) -> Program:
        """Make the program; raises Ended(Rejected) for blocks of less than a warp."""
        c = contraction_of(problem, target)
        block = Block(c, knobs)
        slot = Name("kb")
        load: tuple[Statement, ...] = (
            Wait(FREE, slot),
            *arrive(block, slot, slot, Completion("barrier", FULL, slot)),
            Arrive(FULL, slot),
        )
        compute: tuple[Statement, ...] = (Wait(FULL, slot), multiply(block, slot), Arrive(FREE, slot, "warp"))
        body = (
            WarpRole("compute", "compute", Number(0), parse("threads_x*threads_y/32 - 1")),
            WarpRole(
                "loader", "loader", parse("threads_x*threads_y/32"), parse("threads_x*threads_y/32 + loaders - 1")
            ),
            *block.tiles(Name("stages")),
            Barrier(FULL, Name("stages"), parse("32*loaders")),
            Barrier(FREE, Name("stages"), parse("threads_x*threads_y/32")),
            Role("loader", (For("kb", Number(0), block.steps, load, stages=Name("stages")),)),
            Role(
                "compute",
                (
                    block.accumulator("compute"),
                    For("kb", Number(0), block.steps, compute, stages=Name("stages")),
                    block.finish(),
                ),
            ),
        )
        launch = block.launch("matmul", body, parse("threads_x*threads_y + 32*loaders"))
        consts = block.constants(self.knobs(problem, target, device))
        return c.program(
            "warp_specialized", target, device, runtime_sizes, consts, (launch,), multiples=multiples_of(problem, knobs)
        )


PLUGIN: Structure = WarpSpecialized()
