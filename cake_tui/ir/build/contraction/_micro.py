"""The register-blocked part that blocked structures share: knobs, names, loops over micro-tiles, the tail of a sum."""

from __future__ import annotations

from collections.abc import Mapping

from cake_tui.ir.build.contraction._problem import ACC, Contraction, at_element
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
from cake_tui.model.device import Device
from cake_tui.model.diagnostic import Diagnostic
from cake_tui.model.schedule import Knob, KnobValue

LINE_BYTES = 64


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


def tile_knobs(device: Device, dtype: str, *, vector: int, thread_m: int, thread_n: int) -> tuple[Knob, ...]:
    """Return the knobs of task block, register block, vector and unrolling; defaults as given."""
    lanes = vector_values(device, dtype)
    return (
        Knob("threads_x", (1, 2, 4, 8, 16, 32), 4),
        Knob("threads_y", (1, 2, 4, 8, 16, 32), 4),
        Knob("thread_m", (1, 2, 4, 6, 8, 12, 14), thread_m),
        Knob("thread_n", (1, 2, 3, 4), thread_n),
        Knob("vector", lanes, max(value for value in lanes if value <= vector)),
        Knob("unroll", (1, 2, 4, 8), 1),
    )


def check_registers(knobs: Mapping[str, KnobValue], device: Device) -> None:
    """Raise Ended(Rejected) where accumulators and operands exceed the vector registers."""
    thread_m, thread_n = int(knobs["thread_m"]), int(knobs["thread_n"])
    limit = device.vector_registers or 16
    asked = thread_m * thread_n + thread_n + 1
    if asked <= limit:
        return
    raise refuse_limit(
        Diagnostic(
            law="vector-registers",
            field="thread_m",
            found=f"thread_m = {thread_m} with thread_n = {thread_n} keeps {asked} vectors",
            needed=f"thread_m*thread_n + thread_n + 1 <= {limit}",
            nearest=f"thread_m <= {max((limit - 1 - thread_n) // thread_n, 1)}",
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
