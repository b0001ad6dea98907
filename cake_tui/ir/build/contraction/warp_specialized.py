"""Warp-specialised: loader warps fill a ring of shared memory, compute warps multiply; phase barriers join them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cake_tui.ir.build import Structure
from cake_tui.ir.build._accesses import WIDEST, widest
from cake_tui.ir.build.contraction._block import Block, multiples_of
from cake_tui.ir.build.contraction._problem import contraction_of
from cake_tui.ir.build.contraction._ring import arrive, multiply, ring_knobs
from cake_tui.ir.expr import Expr, Name, Number, Ref, parse
from cake_tui.ir.program import (
    DTYPE_BYTES,
    PTXAS,
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
    Sync,
    Wait,
    WarpRole,
)
from cake_tui.ir.refusal import refuse
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import ACC, Problem
from cake_tui.model.schedule import Knob, KnobValue

FULL, FREE = "full", "free"
TMA_SINCE = 90  # compute capability
TMA_ALIGN = 128  # bytes, of what a bulk copy writes
SWIZZLES = (32, 64, 128)  # bytes
SWIZZLE_ROWS = 8  # of a swizzle's pattern
SLICES = (1, 2)
FRAGMENTS = (1, 2)
LEVELS = (1, 3)  # of ptxas
LARGE = 128  # sums a thread, which leave no registers for operands read ahead
# What to begin with where a multiprocessor gets one or two such blocks, and so each block few warps: the best of what
# was timed on an H200 at 1024 x 1024 x 1024 (46.3 us; 48.4 us the best with one group of warps, 63.6 us cuBLAS).
SLICED: dict[str, KnobValue] = {
    "threads_x": 8, "threads_y": 8, "thread_m": 8, "thread_n": 8, "block_k": 32, "unroll": 32, "stages": 4, "tma": True,
    "slice_k": 2, PTXAS: 1,
}  # fmt: skip
SIDE = 64  # elements of such a block, down and across
HELD = 2  # such blocks on a multiprocessor at once
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
    has the bulk engine copy whole tiles, a as it lies, so that threads read it along k. With `slice_k` of more than 1
    as many groups of compute warps take the blocks of k in turn, each into sums of its own; the first group adds them.
    """

    targets = ("cuda",)

    def knobs(self, problem: Problem, target: Target, device: Device) -> tuple[Knob, ...]:
        """Return the knobs; `loaders` in warps, `stages` in blocks of k, `slice_k` in groups of compute warps,
        `fragments` in steps of k that a thread's registers hold of each operand; `ptxas` is the level at which that
        assembler optimises. `tma` from sm_90 on.
        """
        ring = ring_knobs(problem, device, BLOCKS)
        first = {knob.name: knob.default for knob in ring}
        sums = int(first["thread_m"]) * int(first["thread_n"])
        found = (
            *ring,
            Knob("loaders", (1, 2, 4, 8), 4),
            Knob("slice_k", SLICES, 1),
            Knob("fragments", FRAGMENTS, 1 if sums >= LARGE else 2),
            Knob(PTXAS, LEVELS, 3),
        )
        if device.capability < TMA_SINCE:
            return found
        start = SLICED if _is_sliced(problem, device) else {}
        return tuple(
            Knob(knob.name, knob.values, start.get(knob.name, knob.default))
            for knob in (*found, Knob("tma", (False, True), False))
        )

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
        slices, stages = int(knobs.get("slice_k", 1)), int(knobs["stages"])
        if stages % slices:
            raise refuse(
                "whole-turns", "stages", f"{stages} slots for {slices} groups", "as many slots for each group",
                nearest=str(stages - stages % slices), step="build",
            )  # fmt: skip
        last, whole = ("", "32") if tma else (" + loaders - 1", "32*loaders")
        warps = "threads_x*threads_y/32" if slices == 1 else "slice_k*threads_x*threads_y/32"
        body: tuple[Statement, ...] = (
            *(_compute_warps(number, slices) for number in range(slices)),
            WarpRole("loader", "loader", parse(warps), parse(f"{warps}{last}")),
            *(_dense_tiles(block) if tma else block.tiles(Name("stages"))),
            *_sums(block, slices),
            Barrier(FULL, Name("stages"), parse("1" if tma else whole)),
            Barrier(FREE, Name("stages"), parse("threads_x*threads_y/32")),
            _bulk_loader(block, slot) if tma else _loaders(block, slot),
            *(_compute(block, slot, number, slices) for number in reversed(range(slices))),
        )
        threads = "threads_x*threads_y" if slices == 1 else "slice_k*threads_x*threads_y"
        launch = block.launch("matmul", body, parse(f"{threads} + {whole}"))
        unfelt = [
            *(("loaders", "pad") if tma else ()),
            *(name for name in ("slice_k", "fragments") if knobs.get(name, 1) == 1),
            *((PTXAS,) if knobs.get(PTXAS, 3) == 3 else ()),
        ]
        consts = block.constants(self.knobs(problem, target, device), tuple(unfelt))
        return c.program(
            "warp_specialized", target, device, runtime_sizes, consts, (launch,), multiples=multiples_of(problem, knobs)
        )


def _is_sliced(problem: Problem, device: Device) -> bool:
    """Say whether `SLICED` blocks give each multiprocessor one and fit at once, with rows that bulk copies can take."""
    c = contraction_of(problem, "cuda")
    lengths = [shape[name] for shape in problem.shapes for name in (c.columns, c.depth)]
    rows, columns, depth = (problem.shapes[0][name] for name in (c.rows, c.columns, c.depth))
    blocks = math.ceil(rows / SIDE) * math.ceil(columns / SIDE)
    filled = depth >= int(SLICED["block_k"]) * int(SLICED["stages"])
    wide = widest(c.dtype, lengths) * DTYPE_BYTES[c.dtype] == WIDEST
    return c.dtype == "f32" and wide and filled and device.cores <= blocks <= HELD * device.cores


def _compute_warps(number: int, slices: int) -> WarpRole:
    """Declare the warps of one group that multiplies."""
    each = "threads_x*threads_y/32"
    if slices == 1:
        return WarpRole("compute", "compute", Number(0), parse(f"{each} - 1"))
    first = Number(0) if number == 0 else parse(each if number == 1 else f"{number}*{each}")
    return WarpRole(
        f"compute{number}", "compute", first, parse(f"{number + 1}*{each} - 1" if number else f"{each} - 1")
    )


def _sums(block: Block, slices: int) -> tuple[Declare, ...]:
    """Declare where the groups behind the first one hand their sums over."""
    shape: tuple[Expr, ...] = (Name("block_m"), Name("block_n"))
    return tuple(
        Declare(Buffer(f"sums{number}", "shared", block.c.dtype, shape, align=WIDEST))  # type: ignore[arg-type]
        for number in range(1, slices)
    )


def _compute(block: Block, slot: Expr, number: int, slices: int) -> Role:
    """One group multiplies its blocks of k; the first one adds the others' sums and writes the output."""
    name = "compute" if slices == 1 else f"compute{number}"
    acc = ACC if number == 0 else f"{ACC}{number}"
    turn = (Wait(FULL, slot), multiply(block, slot, acc), Arrive(FREE, slot, "warp"))
    declared = block.accumulator(name, rows_apart=bool(block.knobs.get("tma", False)), acc=acc)
    step = Number(1) if slices == 1 else Name("slice_k")
    loop = For("kb", Number(number), block.steps, turn, step, stages=Name("stages"))
    meet = () if slices == 1 else (Sync("named", 1, parse("slice_k*threads_x*threads_y")),)
    if number:
        return Role(name, (declared, loop, block.hand_over(Ref(acc), Ref(f"sums{number}")), *meet))
    others = tuple(block.add(Ref(acc), Ref(f"sums{other}")) for other in range(1, slices))
    return Role(name, (declared, loop, *meet, *others, block.finish()))


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
    """Declare rings that the bulk engine can fill: dense, rows as they lie in memory.

    Rows of a as long as a swizzle are permuted by it, so that threads which read neighbouring rows meet in no bank; not
    where a slot is no whole number of patterns, at one of which a bulk copy has to begin.
    """
    shape: tuple[Expr, ...] = (Name("stages"), Name("block_m"), Name("block_k"))
    row = int(block.knobs["block_k"]) * DTYPE_BYTES[block.c.dtype]
    rows = int(block.knobs["threads_y"]) * int(block.knobs["thread_m"])
    swizzle = row if row in SWIZZLES and rows % SWIZZLE_ROWS == 0 else 0
    align = SWIZZLE_ROWS * swizzle or TMA_ALIGN
    left = Buffer("a_tile", "shared", block.c.dtype, shape, align=align, swizzle=swizzle, ring=True)  # type: ignore[arg-type]
    return Declare(left), block.right_tile(Name("stages"), TMA_ALIGN)


PLUGIN: Structure = WarpSpecialized()
