"""Split-k: tasks also share out the sum over k; a second launch adds the partial sums and finishes."""

from __future__ import annotations

from collections.abc import Mapping

from cake_tui.ir.build import Structure
from cake_tui.ir.build.contraction._block import Block, multiples_of
from cake_tui.ir.build.contraction._micro import LINE_BYTES, TILE_N, Tiles, check_registers, constants, tile_knobs
from cake_tui.ir.build.contraction._problem import at_element, contraction_of
from cake_tui.ir.build.contraction._ring import ring_knobs, turns
from cake_tui.ir.expr import Name, Number, Ref, Span, parse
from cake_tui.ir.program import Assign, Axis, Buffer, Declare, For, Guard, Lanes, Launch, Program, Threads
from cake_tui.ir.refusal import refuse
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import ACC, Problem
from cake_tui.model.schedule import Knob, KnobValue

ADDING = 256  # threads of a block that adds parts


class SplitK:
    """`split_k` partial sums of each output element, in a workspace; worth it where M and N are small beside K.

    On ``cuda`` it is what fills the device where the blocks of the output alone do not.
    """

    targets = ("c", "cuda")

    def knobs(self, problem: Problem, target: Target, device: Device) -> tuple[Knob, ...]:
        """Return the knobs; `split_k` counts the parts of the sum."""
        shared = ring_knobs(problem, device) if target == "cuda" else tile_knobs(problem, target, device)
        return *shared, Knob("split_k", (2, 4, 8, 16), 2)

    def multiples(self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target) -> dict[str, int]:
        """Return what wide accesses need on ``cuda``, none on ``c``; parts of the sum may be empty."""
        return multiples_of(problem, knobs) if target == "cuda" else {}

    def build(
        self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target, device: Device, runtime_sizes: bool
    ) -> Program:
        """Make the program; raises Ended(Rejected) where sums must stay in order or registers run out."""
        if problem.accumulation == "ordered":
            raise refuse(
                "accumulation", "accumulation", "ordered", "blocked or any: split-k sums out of order", step="build"
            )
        c = contraction_of(problem, target)
        known = self.knobs(problem, target, device)
        partial = Buffer(
            "partial", "workspace", c.dtype, (Name("split_k"), Name(c.rows), Name(c.columns)),  # type: ignore[arg-type]
            align=LINE_BYTES,
        )  # fmt: skip
        needs: Mapping[str, int] = {}
        if target == "cuda":
            block = Block(c, knobs)
            needs = multiples_of(problem, knobs)
            launches = _parts_of_blocks(block), _added_by_rows(block)
            consts = block.constants(known)
        else:
            check_registers(knobs, device)
            tiles = Tiles(c)
            launches = _parts_of_tasks(tiles), _added_by_tasks(tiles)
            consts = (*constants(knobs, known), TILE_N)
        return c.program("split_k", target, device, runtime_sizes, consts, launches, (partial,), multiples=needs)


def _parts_of_blocks(block: Block) -> Launch:
    """Make the first launch on a GPU: the pipelined block over the blocks of k of its part."""
    each = f"ceil(ceil({block.c.depth}/block_k)/split_k)"
    count = parse(f"min({each}, ceil({block.c.depth}/block_k) - part*{each})")
    place = Ref("partial", (Name("part"), block.rows, block.columns))
    body = (
        *block.tiles(Name("stages")),
        block.accumulator(),
        *turns(block, count, parse(f"part*{each}")),
        block.store(place, Ref(ACC)),
    )
    return block.launch("matmul", body, parse("threads_x*threads_y"), (Axis("part", Name("split_k")),))


def _added_by_rows(block: Block) -> Launch:
    """Make the second launch on a GPU: a thread a vector of one row, its partial sums added part after part."""
    c, width = block.c, block.width
    across = parse(f"{ADDING}*vector")
    columns = Span(parse(f"bn*({ADDING}*vector)"), across, c.n)
    guard = Guard(parse(f"{c.n} < {c.columns}"), Number(0))
    spread = Threads((Number(ADDING),), (Name("vector"),))
    total = Buffer(ACC, "register", c.dtype, (across,), spread=spread, init=Number(0))  # type: ignore[arg-type]
    part = Ref("partial", (Name("part"), Name(c.m), columns))
    add = For("part", Number(0), Name("split_k"), (Assign(Ref(ACC), part, "+=", width, guard),), unroll=Name("split_k"))
    store = Assign(c.outputs(Name(c.m), columns), at_element(c.value, Ref(ACC)), "=", width, Guard(guard.condition))
    grid = (Axis("bn", parse(f"ceil({c.columns}/({ADDING}*vector))")), Axis(c.m, Name(c.rows)))
    return Launch("combine", grid, (Declare(total), add, store), Number(ADDING))


def _parts_of_tasks(tiles: Tiles) -> Launch:
    """Make the first launch on a CPU: micro-tiles over the range of k of their part."""
    c = tiles.c
    left, right = Ref("a", (tiles.rows, Name(c.k))), Ref("b", (Name(c.k), tiles.columns))
    start = parse(f"part*ceil({c.depth}/split_k)")
    stop = parse(f"min((part + 1)*ceil({c.depth}/split_k), {c.depth})")
    place = Ref("partial", (Name("part"), tiles.rows, tiles.columns))
    micro = (
        tiles.accumulator(),
        tiles.multiply(left, right, start, stop, Guard(tiles.inside, Number(0))),
        Assign(place, Ref(ACC), "=", Name("vector"), Guard(tiles.inside)),
    )
    grid = (Axis("part", Name("split_k")), *tiles.grid())
    return Launch("matmul", grid, (tiles.over_columns((tiles.over_rows(micro),)),))


def _added_by_tasks(tiles: Tiles) -> Launch:
    """Make the second launch on a CPU: a task a block of rows, its partial sums added part after part."""
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
