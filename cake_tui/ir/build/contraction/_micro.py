"""The register-blocked part that blocked structures share: knobs, names, loops over micro-tiles, the tail of a sum."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

from cake_tui.ir.build.contraction._problem import Contraction, at_element, contraction_of
from cake_tui.ir.expr import Expr, Name, Number, Ref, Span, parse
from cake_tui.ir.program import (
    DTYPE_BYTES,
    Assign,
    Axis,
    Buffer,
    Const,
    Contract,
    Declare,
    For,
    Guard,
    If,
    Lanes,
    Statement,
)
from cake_tui.ir.refusal import refuse_limit
from cake_tui.model.device import Device, Target
from cake_tui.model.diagnostic import Diagnostic
from cake_tui.model.problem import ACC, Problem
from cake_tui.model.schedule import Knob, KnobValue

LINE_BYTES = 64
L1_BYTES = 32 << 10  # of a device that does not say
SIDES = (1, 2, 4, 8, 16, 32)
THREAD_M, THREAD_N = (1, 2, 4, 6, 8, 12, 14), (1, 2, 3, 4)
DEPTHS = (16, 32, 64, 128, 256, 512, 1024)
TASKS = 4  # a core, so that the last ones to end cost little


def vector_values(device: Device, dtype: str) -> tuple[int, ...]:
    """Return the legal elements of a vector: 1, and the powers of two from 16 bytes to the widest register."""
    size = DTYPE_BYTES[dtype]
    widest = max(device.vector_bytes, 16) // size
    found = [1]
    lanes = 16 // size
    while lanes <= widest:
        found.append(lanes)
        lanes *= 2
    return tuple(found)


@lru_cache(maxsize=64)
def tile_knobs(problem: Problem, target: Target, device: Device) -> tuple[Knob, ...]:
    """Return the knobs of task block, register block, vector and unrolling, with what suits the device as defaults.

    The widest vector, two of them a row and as many rows as the registers hold; the largest square task block up to
    four by four that leaves each core `TASKS` tasks. Nothing is larger than the first ranked shape needs.
    """
    c = contraction_of(problem, target)
    rows, columns = problem.shapes[0][c.rows], problem.shapes[0][c.columns]
    lanes = vector_values(device, c.dtype)
    thread_n = _needed(THREAD_N[:2], math.ceil(columns / lanes[-1]))[-1]
    held = [m for m in _needed(THREAD_M, rows) if vectors_kept(m, thread_n) <= registers_of(device)]
    thread_m = max(held, default=1)
    down, across = math.ceil(rows / thread_m), math.ceil(columns / (thread_n * lanes[-1]))
    sides = [side for side in SIDES[:3] if math.ceil(down / side) * math.ceil(across / side) >= TASKS * device.cores]
    side = max(sides, default=1)
    return (
        Knob("threads_x", SIDES, side),
        Knob("threads_y", SIDES, side),
        Knob("thread_m", THREAD_M, thread_m),
        Knob("thread_n", THREAD_N, thread_n),
        Knob("vector", lanes, lanes[-1]),
        Knob("unroll", (1, 2, 4, 8), 1),  # so many sums hide the loop's own instructions
    )


@lru_cache(maxsize=64)
def blocked_knobs(problem: Problem, target: Target, device: Device) -> tuple[Knob, ...]:
    """Return the knobs of a structure that works on blocks of k and may stage an operand; `pad` in elements.

    `block_k` is by default as deep as a column tile of b leaves a third of the first cache.
    """
    depth = problem.shapes[0][contraction_of(problem, target).depth]
    row_bytes = 2 * max(device.vector_bytes, 16)
    room = (device.l1_bytes or L1_BYTES) * 2 // 3
    deepest = max((k for k in _needed(DEPTHS, depth) if k * row_bytes <= room), default=DEPTHS[0])
    return (
        *tile_knobs(problem, target, device),
        Knob("block_k", DEPTHS, deepest),
        Knob("pad", (0, 1, 4, 8, 16, 32), 0),
        Knob("shared", (False, True), False),
    )


def _needed(values: Sequence[int], size: int) -> Sequence[int]:
    """Return the values up to the first that covers `size`."""
    return [value for below, value in zip((0, *values), values) if below < max(1, size)]


def registers_of(device: Device) -> int:
    """Return the device's vector registers, 16 where it does not say."""
    return device.vector_registers or 16


def vectors_kept(thread_m: int, thread_n: int) -> int:
    """Return the vectors that a register block keeps: its sums, a row of b and one element of a."""
    return thread_m * thread_n + thread_n + 1


def _that_fit(thread_m: int, thread_n: int, limit: int) -> list[str]:
    """The largest legal value of either side that fits with the other side as it is."""
    rows = [m for m in THREAD_M if vectors_kept(m, thread_n) <= limit and m <= thread_m]
    columns = [n for n in THREAD_N if vectors_kept(thread_m, n) <= limit and n <= thread_n]
    found = [f"thread_m = {max(rows)}"] if rows else []
    return found + ([f"thread_n = {max(columns)}"] if columns else [])


def check_registers(knobs: Mapping[str, KnobValue], device: Device) -> None:
    """Raise Ended(Rejected) where accumulators and operands exceed the vector registers."""
    thread_m, thread_n = int(knobs["thread_m"]), int(knobs["thread_n"])
    limit, asked = registers_of(device), vectors_kept(thread_m, thread_n)
    if asked <= limit:
        return
    raise refuse_limit(
        Diagnostic(
            law="vector-registers",
            field="thread_m",
            found=f"thread_m = {thread_m} with thread_n = {thread_n} keeps {asked} vectors",
            needed=f"thread_m*thread_n + thread_n + 1 <= {limit}",
            nearest=" or ".join(_that_fit(thread_m, thread_n, limit)),
            limit="vector registers",
            asked=asked,
            available=limit,
            unit="registers",
        )
    )


def constants(knobs: Mapping[str, KnobValue], known: tuple[Knob, ...]) -> tuple[Const, ...]:
    """Return the numeric knobs as named constants with their other legal values."""
    made = []
    for knob in known:
        value = knobs[knob.name]
        if not isinstance(value, bool | str):
            made.append(Const(knob.name, Number(value), tuple(int(other) for other in knob.values)))
    return tuple(made)


TILE_N = Const("tile_n", parse("thread_n*vector"))


class Tiles:
    """Names and loops of the micro-tiles: row tiles of thread_m, column tiles of tile_n, counted over the matrix."""

    def __init__(self, contraction: Contraction) -> None:
        self.c = contraction
        self.row_tiles = parse(f"ceil({contraction.rows}/thread_m)")
        self.column_tiles = parse(f"ceil({contraction.columns}/tile_n)")
        self.rows = Span(parse("ty*thread_m"), Name("thread_m"), contraction.m)
        self.columns = Span(parse("tx*tile_n"), Name("tile_n"), contraction.n)
        self.in_rows = parse(f"{contraction.m} < {contraction.rows}")
        self.in_columns = parse(f"{contraction.n} < {contraction.columns}")
        self.inside = parse(f"{contraction.m} < {contraction.rows} and {contraction.n} < {contraction.columns}")

    def grid(self) -> tuple[Axis, ...]:
        """Return the grid of task blocks, columns fastest."""
        c = self.c
        rows = parse(f"ceil({c.rows}/(threads_y*thread_m))")
        return (Axis("by", rows), Axis("bx", parse(f"ceil({c.columns}/(threads_x*tile_n))")))

    def over_rows(self, body: tuple[Statement, ...]) -> For:
        """Loop over the row tiles of a task."""
        stop = parse(f"min((by + 1)*threads_y, ceil({self.c.rows}/thread_m))")
        return For("ty", parse("by*threads_y"), stop, body)

    def over_columns(self, body: tuple[Statement, ...]) -> For:
        """Loop over the column tiles of a task."""
        stop = parse(f"min((bx + 1)*threads_x, ceil({self.c.columns}/tile_n))")
        return For("tx", parse("bx*threads_x"), stop, body)

    def accumulator(self) -> Declare:
        """Declare the register block of sums, zero at first."""
        shape: tuple[Expr, ...] = (Name("thread_m"), Name("tile_n"))
        spread = Lanes(Name("vector"))
        return Declare(Buffer(ACC, "register", self.c.dtype, shape, spread=spread, init=Number(0)))  # type: ignore[arg-type]

    def multiply(self, left: Ref, right: Ref, start: Expr, stop: Expr, where: Guard | None = None) -> For:
        """Add the products of one range of k to the register block."""
        step = Contract(Ref(ACC), left, right, "outer", "fma", None, where)
        return For(self.c.k, start, stop, (step,), unroll=Name("unroll"))

    def store(self, acc: Ref) -> Assign:
        """Write the output elements of a micro-tile."""
        target = self.c.outputs(self.rows, self.columns)
        return Assign(target, at_element(self.c.value, acc), "=", Name("vector"), Guard(self.inside))


class DepthBlocks:
    """Loops over blocks of k, with the sums of a task kept in a shared buffer from one block to the next."""

    def __init__(self, tiles: Tiles) -> None:
        depth = tiles.c.depth
        self.tiles = tiles
        self.count = parse(f"ceil({depth}/block_k)")
        self.start = parse("kb*block_k")
        self.stop = parse(f"min((kb + 1)*block_k, {depth})")
        rows, columns = parse("threads_y*thread_m"), parse("threads_x*tile_n")
        self.sums = Buffer("sums", "shared", tiles.c.dtype, (rows, columns), align=LINE_BYTES)  # type: ignore[arg-type]
        self.part = Ref(
            "sums",
            (
                Span(parse("(ty - by*threads_y)*thread_m"), Name("thread_m")),
                Span(parse("(tx - bx*threads_x)*tile_n"), Name("tile_n")),
            ),
        )

    def nest(self, load: tuple[Statement, ...], multiply: For) -> tuple[Statement, ...]:
        """Return the body of a task: for each block of k stage operands, then run over the micro-tiles."""
        tiles = self.tiles
        first = If(parse("kb > 0"), (Assign(Ref(ACC), self.part, "=", Name("vector")),))
        keep = Assign(self.part, Ref(ACC), "=", Name("vector"))
        last = If(parse(f"kb + 1 < ceil({tiles.c.depth}/block_k)"), (keep,), (tiles.store(Ref(ACC)),))
        micro = (tiles.accumulator(), first, multiply, last)
        body = (*load, tiles.over_columns((tiles.over_rows(micro),)))
        return (Declare(self.sums), For("kb", Number(0), self.count, body))
