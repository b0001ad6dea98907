"""Tiled: cache blocking without packing, a register block a step; operands read in place or staged by rows."""

from __future__ import annotations

from collections.abc import Mapping

from cake_tui.ir.build import Structure
from cake_tui.ir.build.contraction._block import Block, block_knobs, load, multiples_of
from cake_tui.ir.build.contraction._micro import (
    LINE_BYTES,
    TILE_N,
    DepthBlocks,
    Tiles,
    blocked_knobs,
    check_registers,
    constants,
)
from cake_tui.ir.build.contraction._problem import Contraction, contraction_of
from cake_tui.ir.expr import All, Name, Number, Ref, Span, parse
from cake_tui.ir.program import Buffer, Const, Contract, Copy, Declare, For, Guard, Launch, Program, Statement, Sync
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import ACC, Problem
from cake_tui.model.schedule import Knob, KnobValue


class Tiled:
    """A task or a thread block computes a block of the output, a block of k at a time.

    `shared` stages operands: on ``c`` the task's block of b, rows one behind the other, `pad` elements apart; on
    ``cuda`` the blocks of a and b, in turns of load, barrier, multiply, barrier.
    """

    targets = ("c", "cuda")

    def knobs(self, problem: Problem, target: Target, device: Device) -> tuple[Knob, ...]:
        """Return the knobs; `block_k` in elements, `pad` in elements behind each staged row."""
        if target == "cuda":
            return (*block_knobs(problem, device), Knob("shared", (False, True), True))
        return blocked_knobs(problem, target, device)

    def multiples(self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target) -> dict[str, int]:
        """Return what wide accesses need on ``cuda``, none on ``c``: tails are predicated."""
        return multiples_of(problem, knobs) if target == "cuda" else {}

    def build(
        self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target, device: Device, runtime_sizes: bool
    ) -> Program:
        """Make the program; raises Ended(Rejected) where the register block exceeds the registers."""
        c = contraction_of(problem, target)
        known = self.knobs(problem, target, device)
        if target == "cuda":
            block = Block(c, knobs)
            launches = (_on_gpu(block),)
            unfelt = () if knobs["shared"] else ("block_k", "pad")
            return c.program(
                "tiled", target, device, runtime_sizes, block.constants(known, unfelt), launches,
                multiples=multiples_of(problem, knobs),
            )  # fmt: skip
        check_registers(knobs, device)
        consts, launch = _on_cpu(c, knobs, known)
        return c.program("tiled", target, device, runtime_sizes, consts, (launch,))


def _on_gpu(block: Block) -> Launch:
    """Operands staged by the whole block, or read where they lie; the sums stay in registers."""
    threads = parse("threads_x*threads_y")
    if not block.knobs["shared"]:
        c = block.c
        product = Contract(
            Ref(ACC),
            Ref("a", (block.rows, Name(c.k))),
            Ref("b", (Name(c.k), block.columns)),
            where=Guard(block.inside, Number(0)),
        )
        sums = For(c.k, Number(0), Name(c.depth), (product,), unroll=Name("unroll"))
        return block.launch("matmul", (block.accumulator(), sums, block.finish()), threads)
    wait = Sync("block")
    step = (
        *load(block, Name("kb")),
        wait,
        block.multiply(Ref("a_tile", (All(), Name("kk"))), Ref("b_tile", (Name("kk"), All()))),
        wait,
    )
    body = (*block.tiles(), block.accumulator(), For("kb", Number(0), block.steps, step), block.finish())
    return block.launch("matmul", body, threads)


def _on_cpu(
    c: Contraction, knobs: Mapping[str, KnobValue], known: tuple[Knob, ...]
) -> tuple[tuple[Const, ...], Launch]:
    """Loops over blocks of k and micro-tiles, with the sums of a task kept from one block to the next."""
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
    felt = tuple(knob for knob in known if knob.name != "pad" or staged)
    consts = (*constants(knobs, felt), TILE_N)
    return consts, Launch("matmul", tiles.grid(), body)


PLUGIN: Structure = Tiled()
