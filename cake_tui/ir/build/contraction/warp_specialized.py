"""Warp-specialised: loader warps fill a ring of shared memory, compute warps multiply; phase barriers join them."""

from __future__ import annotations

from collections.abc import Mapping

from cake_tui.ir.build import Structure
from cake_tui.ir.build.contraction._block import Block, multiples_of
from cake_tui.ir.build.contraction._problem import contraction_of
from cake_tui.ir.build.contraction._ring import arrive, multiply, ring_knobs
from cake_tui.ir.expr import Expr, Name, Number, Ref, parse
from cake_tui.ir.program import (
    DTYPE_BYTES,
    Arrive,
    Barrier,
    Buffer,
    Completion,
    Copy,
    Declare,
    Expect,
    For,
    Program,
    Role,
    Statement,
    Wait,
    WarpRole,
)
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Knob, KnobValue

FULL, FREE = "full", "free"
TMA_SINCE = 90  # compute capability
TMA_ALIGN = 128  # bytes, of what a bulk copy writes
# Blocks to begin with, as in `_block`: eight warps that multiply, so that one of them always can.
BLOCKS = (
    (8, 32, 16, 8, 1.0),
    (8, 32, 8, 4, 0.97),
    (8, 16, 8, 4, 0.85),
    (8, 16, 4, 4, 0.65),
    (8, 8, 4, 4, 0.55),
    (8, 16, 2, 2, 0.35),
)


class WarpSpecialized:
    """`loaders` warps copy ahead by `stages` slots while the others multiply; no thread waits for all of the block.

    A slot is `full` with the copies of all loaders, and `free` with one arrival a compute warp. With `tma` one thread
    has the bulk engine copy whole tiles, a as it lies, so that threads read it along k.
    """

    targets = ("cuda",)

    def knobs(self, problem: Problem, target: Target, device: Device) -> tuple[Knob, ...]:
        """Return the knobs; `loaders` in warps, `stages` in blocks of k; `tma` from sm_90 on."""
        found = (*ring_knobs(problem, device, BLOCKS), Knob("loaders", (1, 2, 4, 8), 4))
        return (*found, Knob("tma", (False, True), False)) if device.capability >= TMA_SINCE else found

    def multiples(self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target) -> dict[str, int]:
        """Return what wide accesses need of rows."""
        return multiples_of(problem, knobs)

    def build(
        self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target, device: Device, runtime_sizes: bool
    ) -> Program:
        """Make the program; raises Ended(Rejected) for blocks of less than a warp."""
        c = contraction_of(problem, target)
        block = Block(c, knobs)
        slot, tma = Name("kb"), bool(knobs.get("tma", False))
        last, whole = ("", "32") if tma else (" + loaders - 1", "32*loaders")
        compute: tuple[Statement, ...] = (Wait(FULL, slot), multiply(block, slot), Arrive(FREE, slot, "warp"))
        body = (
            WarpRole("compute", "compute", Number(0), parse("threads_x*threads_y/32 - 1")),
            WarpRole("loader", "loader", parse("threads_x*threads_y/32"), parse(f"threads_x*threads_y/32{last}")),
            *(_dense_tiles(block) if tma else block.tiles(Name("stages"))),
            Barrier(FULL, Name("stages"), parse("1" if tma else whole)),
            Barrier(FREE, Name("stages"), parse("threads_x*threads_y/32")),
            _bulk_loader(block, slot) if tma else _loaders(block, slot),
            Role(
                "compute",
                (
                    block.accumulator("compute", rows_apart=tma),
                    For("kb", Number(0), block.steps, compute, stages=Name("stages")),
                    block.finish(),
                ),
            ),
        )
        launch = block.launch("matmul", body, parse(f"threads_x*threads_y + {whole}"))
        consts = block.constants(self.knobs(problem, target, device), ("loaders", "pad") if tma else ())
        return c.program(
            "warp_specialized", target, device, runtime_sizes, consts, (launch,), multiples=multiples_of(problem, knobs)
        )


def _loaders(block: Block, slot: Expr) -> Role:
    """All threads of the loader warps copy their share; each also arrives by itself."""
    load = (Wait(FREE, slot), *arrive(block, slot, slot, Completion("barrier", FULL, slot)), Arrive(FULL, slot))
    return Role("loader", (For("kb", Number(0), block.steps, load, stages=Name("stages")),))


def _bulk_loader(block: Block, slot: Expr) -> Role:
    """One thread announces the bytes of both tiles and starts their copies."""
    full = Completion("barrier", FULL, slot)
    (left, in_rows), (right, in_columns) = block.operands(slot)
    load = (
        Wait(FREE, slot),
        Expect(FULL, slot, parse(f"{DTYPE_BYTES[block.c.dtype]}*block_k*(block_m + block_n)")),
        Copy(left, Ref("a_tile", (slot,)), "tma_copy", None, full, in_rows),
        Copy(right, Ref("b_tile", (slot,)), "tma_copy", None, full, in_columns),
    )
    return Role("loader", (For("kb", Number(0), block.steps, load, stages=Name("stages")),), "one thread")


def _dense_tiles(block: Block) -> tuple[Declare, Declare]:
    """Declare rings that the bulk engine can fill: dense, rows as they lie in memory."""
    shape: tuple[Expr, ...] = (Name("stages"), Name("block_m"), Name("block_k"))
    left = Buffer("a_tile", "shared", block.c.dtype, shape, align=TMA_ALIGN, ring=True)  # type: ignore[arg-type]
    return Declare(left), block.right_tile(Name("stages"), TMA_ALIGN)


PLUGIN: Structure = WarpSpecialized()
