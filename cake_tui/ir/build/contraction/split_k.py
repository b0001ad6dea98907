"""Split-k: tasks also share out the sum over k; a second launch adds the partial sums and finishes."""

from __future__ import annotations

from collections.abc import Mapping

from cake_tui.ir.build import Structure
from cake_tui.ir.build.contraction._micro import LINE_BYTES, TILE_N, Tiles, check_registers, constants, tile_knobs
from cake_tui.ir.build.contraction._problem import ACC, at_element, contraction_of
from cake_tui.ir.expr import Name, Number, Ref, parse
from cake_tui.ir.program import Assign, Axis, Buffer, Declare, For, Guard, Lanes, Launch, Program
from cake_tui.ir.refusal import refuse
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Knob, KnobValue


class SplitK:
    """`split_k` partial sums of each output element, in a workspace; worth it where M and N are small beside K."""

    targets = ("c",)

    def knobs(self, problem: Problem, target: Target, device: Device) -> tuple[Knob, ...]:
        """Return the knobs; `split_k` counts the parts of the sum."""
        return (
            *tile_knobs(problem, target, device),
            Knob("split_k", (2, 4, 8, 16), 2),
        )

    def multiples(self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target) -> dict[str, int]:
        """Return none: tails are predicated, parts of the sum may be empty."""
        return {}

    def build(
        self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target, device: Device, runtime_sizes: bool
    ) -> Program:
        """Make the program; raises Ended(Rejected) where sums must stay in order or registers run out."""
        if problem.accumulation == "ordered":
            raise refuse(
                "accumulation", "accumulation", "ordered", "blocked or any: split-k sums out of order", step="build"
            )
        check_registers(knobs, device)
        c = contraction_of(problem, target)
        tiles = Tiles(c)
        partial = Buffer(
            "partial", "workspace", c.dtype, (Name("split_k"), Name(c.rows), Name(c.columns)),  # type: ignore[arg-type]
            align=LINE_BYTES,
        )  # fmt: skip
        left, right = Ref("a", (tiles.rows, Name(c.k))), Ref("b", (Name(c.k), tiles.columns))
        start = parse(f"part*ceil({c.depth}/split_k)")
        stop = parse(f"min((part + 1)*ceil({c.depth}/split_k), {c.depth})")
        micro = (
            tiles.accumulator(),
            tiles.multiply(left, right, start, stop, Guard(tiles.inside, Number(0))),
            Assign(
                Ref("partial", (Name("part"), tiles.rows, tiles.columns)),
                Ref(ACC),
                "=",
                Name("vector"),
                Guard(tiles.inside),
            ),
        )
        grid = (Axis("part", Name("split_k")), *tiles.grid())
        matmul = Launch("matmul", grid, (tiles.over_columns((tiles.over_rows(micro),)),))
        consts = (*constants(knobs, self.knobs(problem, target, device)), TILE_N)
        return c.program(
            "split_k", target, device, runtime_sizes, consts, (matmul, self._combine(tiles)), (partial,)
        )  # fmt: skip

    def _combine(self, tiles: Tiles) -> Launch:
        """Make the second launch: a task a block of rows, its partial sums added part after part."""
        c = tiles.c
        total = Buffer(ACC, "register", c.dtype, (Name("tile_n"),), spread=Lanes(Name("vector")), init=Number(0))  # type: ignore[arg-type]
        guard = Guard(tiles.in_columns, Number(0))
        part = Ref("partial", (Name("part"), Name(c.m), tiles.columns))
        add = For("part", Number(0), Name("split_k"), (Assign(Ref(ACC), part, "+=", Name("vector"), guard),))
        store = Assign(
            Ref(c.out, (Name(c.m), tiles.columns)), at_element(c.value, Ref(ACC)), "=", Name("vector"),
            Guard(tiles.in_columns),
        )  # fmt: skip
        columns = For("tx", Number(0), tiles.column_tiles, (Declare(total), add, store))
        stop = parse(f"min((by + 1)*threads_y*thread_m, {c.rows})")
        rows = For(c.m, parse("by*threads_y*thread_m"), stop, (columns,))
        return Launch("combine", (tiles.grid()[0],), (rows,))


PLUGIN: Structure = SplitK()
