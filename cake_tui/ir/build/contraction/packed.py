"""Packed: a first launch lays b out in panels, then register-blocked micro-tiles stream through them."""

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
from cake_tui.ir.program import Axis, Buffer, Copy, Declare, For, Guard, Launch, Program, Statement
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Knob, KnobValue


class Packed:
    """Panels of b, tile_n wide and K long, in a workspace, zero beyond N; packing is part of the work.

    `shared` packs the task's rows of a too, in panels thread_m high; `pad` moves panels apart.
    """

    targets = ("c",)

    def knobs(self, problem: Problem, target: Target, device: Device) -> tuple[Knob, ...]:
        """Return the knobs; `block_k` and `pad` in elements."""
        return blocked_knobs(problem, target, device)

    def multiples(self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target) -> dict[str, int]:
        """Return none: panels are filled up with zeros."""
        return {}

    def build(
        self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target, device: Device, runtime_sizes: bool
    ) -> Program:
        """Make the program; raises Ended(Rejected) where the register block exceeds the registers."""
        check_registers(knobs, device)
        c = contraction_of(problem, target)
        tiles = Tiles(c)
        blocks = DepthBlocks(tiles)
        panels = Buffer(
            "b_panels", "workspace", c.dtype, (tiles.column_tiles, parse(f"{c.depth}*tile_n")),  # type: ignore[arg-type]
            align=LINE_BYTES, pad=Name("pad"),
        )  # fmt: skip
        right = Ref("b_panels", (Name("tx"), Span(parse(f"{c.k}*tile_n"), Name("tile_n"))))
        fill = Copy(
            Ref("b", (Name(c.k), tiles.columns)), right, vector=Name("vector"), where=Guard(tiles.in_columns, Number(0))
        )
        pack = Launch("pack", (Axis("tx", tiles.column_tiles),), (For(c.k, Number(0), Name(c.depth), (fill,)),))
        left = Ref("a", (tiles.rows, Name(c.k)))
        where: Guard | None = Guard(tiles.in_rows, Number(0))
        declare: tuple[Statement, ...] = ()
        load: tuple[Statement, ...] = ()
        if knobs["shared"]:
            rows = Buffer(
                "a_panels", "shared", c.dtype, (Name("threads_y"), parse("block_k*thread_m")),  # type: ignore[arg-type]
                align=LINE_BYTES, pad=Name("pad"),
            )  # fmt: skip
            place = Span(parse(f"({c.k} - kb*block_k)*thread_m"), Name("thread_m"))
            staged = Ref("a_panels", (parse("ty - by*threads_y"), place))
            copy = Copy(left, staged, where=where)
            declare = (Declare(rows),)
            load = (tiles.over_rows((For(c.k, blocks.start, blocks.stop, (copy,)),)),)
            left, where = staged, None
        body = (*declare, *blocks.nest(load, tiles.multiply(left, right, blocks.start, blocks.stop, where)))
        consts = (*constants(knobs, self.knobs(problem, target, device)), TILE_N)
        launches = (pack, Launch("matmul", tiles.grid(), body))
        return c.program("packed", target, device, runtime_sizes, consts, launches, (panels,))


PLUGIN: Structure = Packed()
