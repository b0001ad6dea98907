"""Tiled: cache blocking without packing, a register block a step; operands read in place or staged by rows."""

from __future__ import annotations

from collections.abc import Mapping

from cake_tui.ir.build import Structure
from cake_tui.ir.build.contraction._micro import (
    LINE_BYTES,
    TILE_N,
    DepthBlocks,
    Tiles,
    blocked_knobs,
    check_registers,
    constants,
)
from cake_tui.ir.build.contraction._problem import contraction_of
from cake_tui.ir.expr import Name, Number, Ref, Span, parse
from cake_tui.ir.program import Buffer, Copy, Declare, For, Guard, Launch, Program, Statement
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Knob, KnobValue


class Tiled:
    """A task computes a block of the output, a block of k at a time.

    `shared` stages the task's block of b in a buffer of its own, rows one behind the other, `pad` elements apart.
    """

    targets = ("c",)

    def knobs(self, problem: Problem, target: Target, device: Device) -> tuple[Knob, ...]:
        """Return the knobs; `block_k` in elements, `pad` in elements behind each staged row."""
        return blocked_knobs(problem, target, device)

    def multiples(self, problem: Problem, knobs: Mapping[str, KnobValue]) -> dict[str, int]:
        """Return none: tails are predicated."""
        return {}

    def build(
        self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target, device: Device, runtime_sizes: bool
    ) -> Program:
        """Make the program; raises Ended(Rejected) where the register block exceeds the registers."""
        check_registers(knobs, device)
        c = contraction_of(problem, target)
        tiles = Tiles(c)
        blocks = DepthBlocks(tiles)
        staged = bool(knobs["shared"])
        left = Ref("a", (tiles.rows, Name(c.k)))
        declare: tuple[Statement, ...] = ()
        load: tuple[Statement, ...] = ()
        if staged:
            panel = Buffer(
                "b_block", "shared", c.dtype, (Name("block_k"), parse("threads_x*tile_n")),  # type: ignore[arg-type]
                align=LINE_BYTES, pad=Name("pad"),
            )  # fmt: skip
            row = parse(f"{c.k} - kb*block_k")
            place = Span(parse("(tx - bx*threads_x)*tile_n"), Name("tile_n"))
            right = Ref("b_block", (row, place))
            copy = Copy(
                Ref("b", (Name(c.k), tiles.columns)),
                right,
                vector=Name("vector"),
                where=Guard(tiles.in_columns, Number(0)),
            )
            declare = (Declare(panel),)
            load = (For(c.k, blocks.start, blocks.stop, (tiles.over_columns((copy,)),)),)
            where = Guard(tiles.in_rows, Number(0))
        else:
            right = Ref("b", (Name(c.k), tiles.columns))
            where = Guard(tiles.inside, Number(0))
        multiply = tiles.multiply(left, right, blocks.start, blocks.stop, where)
        body = (*declare, *blocks.nest(load, multiply))
        known = tuple(knob for knob in self.knobs(problem, target, device) if knob.name != "pad" or staged)
        consts = (*constants(knobs, known), TILE_N)
        launch = Launch("matmul", tiles.grid(), body)
        return c.program("tiled", target, device, runtime_sizes, consts, (launch,))


PLUGIN: Structure = Tiled()
