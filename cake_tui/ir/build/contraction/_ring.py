"""Operands copied ahead into rings of shared memory: what pipelined structures on a GPU share."""

from __future__ import annotations

from functools import lru_cache

from cake_tui.ir.build.contraction._block import BLOCKS, Block, block_knobs
from cake_tui.ir.expr import All, Binary, Expr, Name, Number, Ref, parse
from cake_tui.ir.program import (
    Commit,
    Completion,
    Copy,
    For,
    If,
    Statement,
    Sync,
    WaitGroup,
)
from cake_tui.model.device import Device
from cake_tui.model.problem import ACC, Problem
from cake_tui.model.schedule import Knob

STAGES = (2, 3, 4, 5, 6)
LOADS = "loads"


@lru_cache(maxsize=64)
def ring_knobs(
    problem: Problem, device: Device, blocks: tuple[tuple[int, int, int, int, float], ...] = BLOCKS
) -> tuple[Knob, ...]:
    """Return the knobs of a block and `stages`, the blocks of k that are in shared memory or on their way there.

    Copies that turn a over meet in the same banks without padding: 4 elements are the least that wide reads allow.
    """
    return *block_knobs(problem, device, 4, blocks), Knob("stages", STAGES, 4)


def arrive(block: Block, turn: Expr, step: Expr, completes: Completion) -> tuple[Statement, ...]:
    """Start the copies of the block of k `step` into the slot of a turn; a is turned over, element by element."""
    (left, in_rows), (right, in_columns) = block.operands(step)
    return (
        Copy(left, Ref("a_tile", (turn,)), "async_copy", None, completes, in_rows),
        Copy(right, Ref("b_tile", (turn,)), "async_copy", block.width, completes, in_columns),
    )


def multiply(block: Block, turn: Expr, acc: str = ACC) -> For:
    """Add the products of the block of k in the slot of a turn."""
    return block.multiply(Ref("a_tile", (turn, All(), Name("kk"))), Ref("b_tile", (turn, Name("kk"), All())), acc)


def turns(block: Block, count: Expr, first: Expr | None = None) -> tuple[Statement, ...]:
    """Fill all slots but one, then in turns: wait for the oldest, refill the one just used, multiply.

    `count` turns take the blocks of k from `first` on. One barrier a turn does for both: behind it the oldest copies
    of all threads are there, and all threads are done with the slot that is filled next.
    """
    group = Completion("group", LOADS)

    def fill(turn: Expr) -> If:
        step = turn if first is None else Binary("+", first, turn)
        return If(Binary("<", turn, count), arrive(block, turn, step, group))

    begin = For("slot", Number(0), parse("stages - 1"), (fill(Name("slot")), Commit(LOADS)))
    turn = (
        WaitGroup(LOADS, parse("stages - 2")),
        Sync("block"),
        fill(parse("kb + stages - 1")),
        Commit(LOADS),
        multiply(block, Name("kb")),
    )
    return begin, For("kb", Number(0), count, turn, stages=Name("stages"))
