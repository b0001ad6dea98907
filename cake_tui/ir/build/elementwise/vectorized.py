"""Vectorized: wide accesses, several of them on their way before the first result is stored."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cake_tui.ir.build import Structure
from cake_tui.ir.build._accesses import constants, grid_of, vectors, widest
from cake_tui.ir.build.elementwise._problem import Elementwise, elementwise_of
from cake_tui.ir.expr import Expr, Name, Number, Ref, Span, parse
from cake_tui.ir.program import Assign, Axis, Buffer, Const, Copy, Declare, For, Guard, Launch, Program, Threads
from cake_tui.ir.refusal import refuse
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Knob, KnobValue

LANES = (1, 4, 8, 16)
PART = "part"


class Vectorized:
    """A thread computes `thread_m` x `thread_n` elements; on ``c`` a task some rows, vector after vector."""

    targets = ("c", "cuda")

    def knobs(self, problem: Problem, target: Target, device: Device) -> tuple[Knob, ...]:
        """Return the knobs; `thread_n` and `vector` in elements, `thread_m` and `threads_y` in rows.

        By default a thread has four accesses of 16 bytes on their way.
        """
        p = elementwise_of(problem, target)
        if target == "c":
            lanes = tuple(count for count in LANES if 4 * count <= max(device.vector_bytes, 16))
            return Knob("threads_y", (1, 4, 16, 64, 256), 16), Knob("vector", lanes, lanes[-1])
        vector = widest(p.dtype, (shape[p.columns] for shape in problem.shapes))
        found = (
            Knob("threads_x", (32, 64, 128, 256, 512, 1024), 256),
            Knob("thread_n", (1, 2, 4, 8, 16, 32), 4 * vector),
            Knob("vector", vectors(p.dtype), vector),
        )
        return (*found, Knob("threads_y", (1, 2, 4, 8), 1), Knob("thread_m", (1, 2, 4, 8), 1)) if p.m else found

    def multiples(self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target) -> dict[str, int]:
        """Return what wide accesses need of rows on ``cuda``, none on ``c``."""
        return {elementwise_of(problem, target).columns: int(knobs["vector"])} if target == "cuda" else {}

    def build(
        self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target, device: Device, runtime_sizes: bool
    ) -> Program:
        """Make the program; raises Ended(Rejected) where a thread takes less than a vector."""
        p = elementwise_of(problem, target)
        known = constants(knobs, self.knobs(problem, target, device))
        if target == "c":
            return p.program("vectorized", device, runtime_sizes, known, _tasks(p))
        thread_n, vector = int(knobs["thread_n"]), int(knobs["vector"])
        if thread_n < vector:
            raise refuse(
                "whole-vectors", "thread_n", f"thread_n = {thread_n} with vector = {vector}",
                "at least one vector a thread", nearest=str(vector), step="build",
            )  # fmt: skip
        consts = (*known, Const("block_n", parse("threads_x*thread_n")))
        if p.m:
            consts = (*consts, Const("block_m", parse("threads_y*thread_m")))
        return p.program(
            "vectorized",
            device,
            runtime_sizes,
            consts,
            _blocks(p, int(knobs["threads_x"]) * thread_n),
            self.multiples(problem, knobs, target),
        )


def _blocks(p: Elementwise, block_n: int) -> Launch:
    """Compute a tile into registers, then store it: all loads are on their way before the first store."""
    whole, across = (Name("block_n"),), Axis("bn", parse(f"ceil({p.columns}/block_n)"))
    threads, each, runs = (Name("threads_x"),), (Name("thread_n"),), (Name("vector"),)
    row, column = parse("bm*block_m + row"), parse("bn*block_n + column")
    spans = (Span(Number(0), Name("block_n"), "column"),)
    columns = Span(parse("bn*block_n"), Name("block_n"), p.n)
    inside, kept = f"bn*block_n + column < {p.columns}", f"{p.n} < {p.columns}"
    grid, place, count = (across,), Ref(p.out, (columns,)), "threads_x"
    if p.m:
        whole, threads = (Name("block_m"), *whole), (Name("threads_y"), *threads)  # type: ignore[assignment]
        each, runs = (Name("thread_m"), *each), (Number(1), *runs)  # type: ignore[assignment]
        spans = (Span(Number(0), Name("block_m"), "row"), *spans)  # type: ignore[assignment]
        inside, kept = f"bm*block_m + row < {p.rows} and {inside}", f"{p.m} < {p.rows} and {kept}"
        blocks = max(math.ceil(shape[p.columns] / block_n) for shape in p.problem.shapes)
        grid = grid_of(across, Axis("bm", parse(f"ceil({p.rows}/block_m)")), blocks)  # type: ignore[assignment]
        place = Ref(p.out, (Span(parse("bm*block_m"), Name("block_m"), p.m), columns))
        count = "threads_x*threads_y"
    part = Buffer(PART, "register", p.dtype, whole, spread=Threads(threads, each, runs))  # type: ignore[arg-type]
    vector = Name("vector")
    body = (
        Declare(part),
        Assign(Ref(PART, spans), p.at(row, column), "=", vector, Guard(parse(inside), Number(0))),
        Copy(Ref(PART), place, vector=vector, where=Guard(parse(kept))),
    )
    return Launch("elements", grid, body, parse(count))


def _tasks(p: Elementwise) -> Launch:
    """Rows of a task one after the other; without rows its share of the vectors."""
    vector, inside = Name("vector"), Guard(parse(f"{p.n} < {p.columns}"))
    columns: Span | Expr = Span(parse("turn*vector"), vector, p.n)
    store = Assign(Ref(p.out, (Name(p.m), columns) if p.m else (columns,)), p.value, "=", vector, inside)
    turns = parse(f"ceil({p.columns}/vector)")
    if not p.m:
        stop = parse(f"min((block + 1)*threads_y, ceil({p.columns}/vector))")
        share = For("turn", parse("block*threads_y"), stop, (store,))
        return Launch("elements", (Axis("block", parse(f"ceil({p.columns}/(vector*threads_y))")),), (share,))
    rows = For(
        p.m, parse("block*threads_y"), parse(f"min((block + 1)*threads_y, {p.rows})"),
        (For("turn", Number(0), turns, (store,)),),
    )  # fmt: skip
    return Launch("elements", (Axis("block", parse(f"ceil({p.rows}/threads_y)")),), (rows,))


PLUGIN: Structure = Vectorized()
