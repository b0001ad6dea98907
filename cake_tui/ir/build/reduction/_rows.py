"""Rows streamed by the threads of a GPU: knobs, and the turns in which a group of threads takes its share of a row."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from cake_tui.ir.build._accesses import vectors, widest
from cake_tui.ir.build.reduction._problem import Reduction, reduction_of
from cake_tui.ir.expr import Expr, Name, Number, Ref, Span, parse
from cake_tui.ir.program import Assign, Buffer, Declare, For, Guard, Statement, Threads
from cake_tui.ir.refusal import refuse
from cake_tui.model.problem import ACC, Problem
from cake_tui.model.schedule import Knob, KnobValue

EACH = (1, 2, 4, 8, 16, 32)
THREADS_X = (32, 64, 128, 256, 512, 1024)
PART, TOTAL = "part", "total"


@lru_cache(maxsize=64)
def row_knobs(problem: Problem, accesses: int = 4) -> tuple[Knob, ...]:
    """Return the knobs of reading rows: `thread_n` elements a thread and turn, `vector` of them in one access.

    By default a thread has several accesses of 16 bytes on their way: one alone leaves memory idle between turns.
    """
    p = reduction_of(problem, "cuda")
    vector = widest(p.dtype, (shape[p.columns] for shape in problem.shapes))
    return (
        Knob("thread_n", EACH, accesses * vector),
        Knob("vector", vectors(p.dtype), vector),
        Knob("unroll", (1, 2, 4, 8), 1),
    )


def multiples_of(problem: Problem, knobs: Mapping[str, KnobValue]) -> dict[str, int]:
    """Return the multiples that wide accesses need: rows are whole vectors."""
    return {reduction_of(problem, "cuda").columns: int(knobs["vector"])}


def check_vector(knobs: Mapping[str, KnobValue]) -> None:
    """Raise Ended(Rejected) where a thread takes less than a vector."""
    thread_n, vector = int(knobs["thread_n"]), int(knobs["vector"])
    if thread_n < vector:
        raise refuse(
            "whole-vectors", "thread_n", f"thread_n = {thread_n} with vector = {vector}",
            "at least one vector a thread", nearest=str(vector), step="build",
        )  # fmt: skip


def turns(p: Reduction, threads: Expr, rows: Expr | None, start: Expr, stop: Expr) -> tuple[Statement, ...]:
    """Take a row in turns of threads*thread_n columns; every element has a sum of its own until the end.

    With `rows` a group of `threads` takes each of them, of which the grid's axis `block` counts; else there is one,
    named as the grid names it.
    """
    lead: tuple[Expr, ...] = () if rows is None else (rows,)
    one: tuple[Expr, ...] = (Number(1),) * len(lead)
    spread = Threads((*lead, threads), (*one, Name("thread_n")), (*one, Name("vector")))
    shape = (*lead, Name("columns"))
    total = Buffer(ACC, "register", p.dtype, shape, spread=spread, init=p.identity)  # type: ignore[arg-type]
    part = Buffer(PART, "register", p.dtype, shape, spread=spread)  # type: ignore[arg-type]
    row = Name(p.r) if rows is None else parse("block*threads_y + row")
    column = parse("turn*columns + column")
    inside = f"turn*columns + column < {p.columns}"
    if rows is not None:
        inside = f"block*threads_y + row < {p.rows} and {inside}"
    spans = [Span(Number(0), Name("columns"), "column")]
    if rows is not None:
        spans.insert(0, Span(Number(0), rows, "row"))
    read = Assign(Ref(PART, tuple(spans)), p.mapped(row, column), "=", Name("vector"), Guard(parse(inside), p.identity))
    body = (Declare(part), read, p.take(Ref(ACC), Ref(PART)))
    return Declare(total), For("turn", start, stop, body, unroll=Name("unroll"))
