"""The thread block on a GPU that blocked structures share: knobs, names, staging in shared memory, product, store."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

from cake_tui.ir.build._accesses import WIDEST, constants, grid_of, vectors, widest
from cake_tui.ir.build.contraction._problem import Contraction, at_element, contraction_of
from cake_tui.ir.expr import Binary, Expr, Name, Number, Ref, Span, parse
from cake_tui.ir.program import (
    DTYPE_BYTES,
    WARP,
    Assign,
    Axis,
    Buffer,
    Const,
    Contract,
    Copy,
    Declare,
    For,
    Guard,
    Launch,
    Statement,
    Threads,
)
from cake_tui.ir.refusal import refuse
from cake_tui.model.device import Device
from cake_tui.model.problem import ACC, Problem
from cake_tui.model.schedule import Knob, KnobValue

THREADS_X, THREADS_Y = (4, 8, 16, 32, 64), (1, 2, 4, 8, 16, 32)
EACH = (1, 2, 4, 8, 16)
DEPTHS = (8, 16, 32, 64)
PADS = (0, 1, 2, 4, 8)
UNROLLS = (1, 2, 4, 8, 16, 32)
BANDS = (1, 2, 4, 8, 16)
SMALL = 32  # sums a thread
RUN = 4  # columns that a thread holds side by side, where it holds so many

# Blocks to begin with: threads_y, threads_x, thread_m, thread_n, and how near to the peak such a block gets when all
# multiprocessors have one, against the first; seen on an sm_90 device, as orders and not as figures. Two rows of
# sixteen threads make a warp: so few different rows of a keep reads of shared memory short.
BLOCKS = (
    (16, 16, 8, 8, 1.0),
    (8, 16, 8, 8, 0.99),
    (8, 16, 8, 4, 0.85),
    (8, 16, 4, 4, 0.65),
    (8, 8, 4, 4, 0.55),
    (8, 16, 2, 2, 0.35),
)


@lru_cache(maxsize=64)
def block_knobs(
    problem: Problem, device: Device, pad: int = 0, blocks: tuple[tuple[int, int, int, int, float], ...] = BLOCKS
) -> tuple[Knob, ...]:
    """Return the knobs of a block, of what each thread computes, and of staging, with a default that fills the device.

    `pad` in elements behind each row of staged a; `vector` in elements of a global access; `band` in rows of blocks
    that run side by side, so that they find each other's operands in the second-level cache.
    """
    c = contraction_of(problem, "cuda")
    rows, columns = problem.shapes[0][c.rows], problem.shapes[0][c.columns]
    lengths = [shape[name] for shape in problem.shapes for name in (c.columns, c.depth)]
    threads_y, threads_x, thread_m, thread_n, _ = max(blocks, key=lambda block: _filled(block, rows, columns, device))
    deep = 32 if thread_m * thread_n <= SMALL else 16  # so that much work stands behind each wait
    return (
        Knob("threads_x", THREADS_X, threads_x),
        Knob("threads_y", THREADS_Y, threads_y),
        Knob("thread_m", EACH, thread_m),
        Knob("thread_n", EACH, thread_n),
        Knob("block_k", DEPTHS, deep),
        Knob("vector", vectors(c.dtype), widest(c.dtype, lengths)),
        Knob("unroll", UNROLLS, deep),
        Knob("pad", PADS, pad),
        Knob("band", BANDS, 1),
    )


def _filled(block: tuple[int, int, int, int, float], rows: int, columns: int, device: Device) -> float:
    """How much of the device works on elements that are there, times what such a block reaches."""
    threads_y, threads_x, thread_m, thread_n, reaches = block
    down, across = threads_y * thread_m, threads_x * thread_n
    blocks = math.ceil(rows / down) * math.ceil(columns / across)
    cores = max(1, device.cores)
    busy = blocks / (math.ceil(blocks / cores) * cores)
    return busy * (rows * columns) / (blocks * down * across) * reaches


def multiples_of(problem: Problem, knobs: Mapping[str, KnobValue]) -> dict[str, int]:
    """Return the multiples that 16-byte accesses need: rows of a, b and the output are whole vectors."""
    c = contraction_of(problem, "cuda")
    return {c.columns: int(knobs["vector"]), c.depth: int(knobs["vector"])}


class Block:
    """Names and statements of one block: `block_m` x `block_n` outputs, `block_k` of the sum at a time."""

    def __init__(self, contraction: Contraction, knobs: Mapping[str, KnobValue]) -> None:
        c = self.c = contraction
        self.knobs = knobs
        self.vector = int(knobs["vector"])
        self.align = self.vector * DTYPE_BYTES[c.dtype]
        self.threads = int(knobs["threads_x"]) * int(knobs["threads_y"])
        self.rows = Span(parse("bm*block_m"), Name("block_m"), c.m)
        self.columns = Span(parse("bn*block_n"), Name("block_n"), c.n)
        self.inside = parse(f"{c.m} < {c.rows} and {c.n} < {c.columns}")
        self.steps = parse(f"ceil({c.depth}/block_k)")
        if self.threads < WARP:
            raise refuse(
                "whole-warps", "threads_x", f"threads_x*threads_y = {self.threads}", f"a warp: {WARP} threads",
                nearest=str(WARP // int(knobs["threads_y"])), step="build",
            )  # fmt: skip

    def constants(self, known: tuple[Knob, ...], unfelt: tuple[str, ...] = ()) -> tuple[Const, ...]:
        """Return the numeric knobs that the program feels, and the block that follows from them."""
        return (
            *constants(self.knobs, known, unfelt),
            Const("block_m", parse("threads_y*thread_m")),
            Const("block_n", parse("threads_x*thread_n")),
        )

    def launch(self, name: str, body: tuple[Statement, ...], threads: Expr, axes: tuple[Axis, ...] = ()) -> Launch:
        """Make the launch over the blocks of the output, `band` rows of blocks at a time where that is more than 1."""
        block_m = int(self.knobs["threads_y"]) * int(self.knobs["thread_m"])
        row_blocks = max(math.ceil(shape[self.c.rows] / block_m) for shape in self.c.problem.shapes)
        rows = Axis("bm", parse(f"ceil({self.c.rows}/block_m)"))
        grid = (*axes, *grid_of(rows, Axis("bn", parse(f"ceil({self.c.columns}/block_n)")), row_blocks))
        if self.knobs["band"] == 1:
            return Launch(name, grid, body, threads)
        return Launch(name, grid, body, threads, order="grouped", group=Name("band"))

    def accumulator(self, owner: str = "", rows_apart: bool = False, acc: str = ACC) -> Declare:
        """Declare the register block of sums, zero at first; with `rows_apart` a thread's rows are dealt one by one."""
        runs = (Number(1), Number(math.gcd(int(self.knobs["thread_n"]), RUN))) if rows_apart else ()
        spread = Threads((Name("threads_y"), Name("threads_x")), (Name("thread_m"), Name("thread_n")), runs)
        shape: tuple[Expr, ...] = (Name("block_m"), Name("block_n"))
        return Declare(
            Buffer(acc, "register", self.c.dtype, shape, owner=owner, spread=spread, init=Number(0))  # type: ignore[arg-type]
        )

    def operands(self, step: Expr) -> tuple[tuple[Ref, Guard], tuple[Ref, Guard]]:
        """Return the tiles of a and b that one block of k takes, and what keeps them inside."""
        c = self.c
        depth = Span(Binary("*", step, Name("block_k")), Name("block_k"), c.k)
        left = Ref("a", (self.rows, depth)), Guard(parse(f"{c.m} < {c.rows} and {c.k} < {c.depth}"), Number(0))
        right = Ref("b", (depth, self.columns)), Guard(parse(f"{c.k} < {c.depth} and {c.n} < {c.columns}"), Number(0))
        return left, right

    def multiply(self, left: Ref, right: Ref, acc: str = ACC) -> For:
        """Add the products of one staged block of k: `left` and `right` hold it from 0 to block_k."""
        step = Contract(Ref(acc), left, right, "outer", "fma")
        ahead = Name("fragments") if self.knobs.get("fragments", 1) != 1 else None
        return For("kk", Number(0), Name("block_k"), (step,), unroll=Name("unroll"), stages=ahead)

    def hand_over(self, acc: Ref, sums: Ref) -> Copy:
        """Put a register block of sums where other threads find it."""
        return Copy(acc, sums, vector=self._run)

    def add(self, acc: Ref, sums: Ref) -> Assign:
        """Add sums that other threads handed over."""
        return Assign(acc, sums, "+=", self._run)

    @property
    def _run(self) -> Expr | None:
        """The `vector` clause of accesses to the block's elements that a thread holds side by side."""
        width = math.gcd(RUN, int(self.knobs["thread_n"]))
        return Number(width) if width > 1 else None

    def store(self, target: Ref, value: Expr) -> Assign:
        """Write the block's elements where they are inside, as wide as a thread's run and `vector` allow."""
        width = math.gcd(self.vector, int(self.knobs["thread_n"]))
        return Assign(target, value, "=", Number(width) if width > 1 else None, Guard(self.inside))

    def finish(self) -> Assign:
        """Write the output elements of a block."""
        return self.store(self.c.outputs(self.rows, self.columns), at_element(self.c.value, Ref(ACC)))

    def tiles(self, stages: Expr | None = None) -> tuple[Declare, Declare]:
        """Declare the staged operands, k outermost in both; with `stages` each is a ring.

        Threads of a warp take neighbouring rows of a at one k, so its rows lie side by side, `pad` behind each k.
        """
        shape: tuple[Expr, ...] = (Name("block_m"), Name("block_k"))
        pad = Name("pad") if self.knobs["pad"] else Number(0)
        ring, order = stages is not None, (1, 0)
        if stages is not None:
            shape, order = (stages, *shape), (0, 2, 1)  # type: ignore[assignment]
        left = Buffer("a_tile", "shared", self.c.dtype, shape, align=WIDEST, order=order, pad=pad, ring=ring)  # type: ignore[arg-type]
        return Declare(left), self.right_tile(stages, WIDEST)

    def right_tile(self, stages: Expr | None, align: int) -> Declare:
        """Declare the staged block of b, its rows as they lie in memory."""
        shape: tuple[Expr, ...] = (Name("block_k"), Name("block_n"))
        ring = stages is not None
        if stages is not None:
            shape = (stages, *shape)
        return Declare(Buffer("b_tile", "shared", self.c.dtype, shape, align=align, ring=ring))  # type: ignore[arg-type]

    @property
    def width(self) -> Expr | None:
        """The `vector` clause of copies along a row; None where they move single elements."""
        return Name("vector") if self.vector > 1 else None


def load(block: Block, step: Expr) -> tuple[Statement, ...]:
    """Copy one block of k into the tiles by way of registers: wide loads along k, then stores across it."""
    (left, in_rows), (right, in_columns) = block.operands(step)
    plain = Copy(right, Ref("b_tile"), vector=block.width, where=in_columns)
    if block.vector == 1:
        return Copy(left, Ref("a_tile"), where=in_rows), plain
    across = int(block.knobs["block_k"]) // block.vector
    down = min(max(1, block.threads // across), int(block.knobs["threads_y"]) * int(block.knobs["thread_m"]))
    spread = Threads(
        (Number(down), parse("block_k/vector")), (parse(f"block_m/{down}"), Name("vector")), (Number(1), Name("vector"))
    )
    part = Buffer("a_part", "register", block.c.dtype, (Name("block_m"), Name("block_k")), spread=spread)  # type: ignore[arg-type]
    return (
        Declare(part),
        Copy(left, Ref("a_part"), vector=block.width, where=in_rows),
        Copy(Ref("a_part"), Ref("a_tile")),
        plain,
    )
