"""Products whose operands are read ahead: while one step's fragments are multiplied, the next ones are on their way."""

from __future__ import annotations

import math

from cake_tui.ir.expr import Binary, Expr, Name, Number, Ref, substitute
from cake_tui.ir.lower.cuda.along import steps_of
from cake_tui.ir.lower.cuda.frame import CudaFrame
from cake_tui.ir.lower.cuda.products import declare_fragment, load_fragment, multiply
from cake_tui.ir.lower.tiles import shaped
from cake_tui.ir.program import Contract, For


def reads_ahead(frame: CudaFrame, loop: For) -> Contract | None:
    """Return the product of a pipelined loop that is nothing else, and whose operands wait in memory."""
    product = steps_of(frame, loop)
    if loop.stages is None or product is None:
        return None
    depth, turns = frame.proofs.number(frame.tidy(loop.stages)), frame.proofs.number(frame.tidy(loop.stop))
    return product if depth is not None and turns is not None and 1 < depth <= turns else None


def lower_read_ahead(frame: CudaFrame, loop: For, product: Contract) -> None:
    """Lower such a loop: ``pipeline_stage S`` keeps S fragments of each operand in registers.

    The loop is unrolled by a multiple of S, so that every fragment is in registers of its own.
    """
    assert loop.stages is not None  # the caller looked
    depth = frame.number(loop.stages, "pipeline_stage")
    asked = frame.unroll_of(loop)
    unroll = math.lcm(depth, asked) if asked % depth else asked
    writer, name = frame.writer, loop.variable
    with writer.scope():
        names = list(frame.fresh("left", "right"))
        holds = frame.holds(frame.buffers[product.target.buffer])
        rows, columns = holds
        stages = frame.c(loop.stages)
        for ref, hold, side in zip((product.left, product.right), holds, names):
            declare_fragment(frame, shaped(ref, frame.buffers), hold, f"{side}[{stages}]")
        for ahead in range(depth - 1):
            _load(frame, product, names, Number(ahead), f"{ahead}", name)
        inner = frame.child()
        inner.declare(name, Number(0), loop.stop)
        stop = frame.c(loop.stop, 4)
        writer.pragma(f"unroll {unroll}")
        with writer.block(f"for (int {name} = 0; {name} < {stop}; ++{name})"):
            later = Binary("+", Name(name), Number(depth - 1))
            with writer.block(f"if ({inner.c(later)} < {stop})"):
                _load(inner, product, names, later, f"({inner.c(later)}) % {stages}", name)
            here = [f"{side}[{name} % {stages}]" for side in names]
            multiply(inner, product.target.buffer, (rows, columns), here, serpentine=True)


def _load(frame: CudaFrame, product: Contract, names: list[str], step: Expr, slot: str, variable: str) -> None:
    holds = frame.holds(frame.buffers[product.target.buffer])
    for ref, hold, side in zip((product.left, product.right), holds, names):
        moved = substitute(ref, {variable: step})
        assert isinstance(moved, Ref)  # as it was
        load_fragment(frame, shaped(moved, frame.buffers), hold, f"{side}[{slot}]", [])
