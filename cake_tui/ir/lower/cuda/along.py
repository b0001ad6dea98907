"""Products whose left operand lies along the steps: one read takes several of them, over the wait for a slot too."""

from __future__ import annotations

import math
from collections.abc import Callable

from cake_tui.ir.expr import Binary, Expr, Name, Number, Ref, names_in, substitute
from cake_tui.ir.lower.cuda.asynchronous import lower_wait
from cake_tui.ir.lower.cuda.elements import aligned
from cake_tui.ir.lower.cuda.frame import CudaFrame
from cake_tui.ir.lower.cuda.holds import Hold
from cake_tui.ir.lower.cuda.products import WIDEST, declare_fragment, load_fragment, multiply
from cake_tui.ir.lower.guards import Asked, sort_guard
from cake_tui.ir.lower.tiles import ZERO, shaped
from cake_tui.ir.program import DTYPE_BYTES, Contract, For, Statement, Wait, inner_axis

FRAGMENTS = 2  # of each operand, where they are read ahead over a wait


def steps_of(frame: CudaFrame, loop: For) -> Contract | None:
    """Return the product that a loop over known steps is all of, where its operands wait in memory."""
    if len(loop.body) != 1 or frame.tidy(loop.step) != Number(1) or frame.tidy(loop.start) != ZERO:
        return None
    (product,) = loop.body
    if not isinstance(product, Contract) or product.op != "outer":
        return None
    if frame.proofs.number(frame.tidy(loop.stop)) is None:
        return None
    in_memory = all(frame.buffers[ref.buffer].space != "register" for ref in (product.left, product.right))
    holds = frame.holds(frame.buffers[product.target.buffer])
    if not in_memory or len(holds) != 2 or all(hold.each == 1 for hold in holds):
        return None
    left, right = shaped(product.left, frame.buffers), shaped(product.right, frame.buffers)
    plain = sort_guard(frame, product.where, (*left.axes, *right.axes)) == Asked((), ())
    return product if plain else None


def run_along(frame: CudaFrame, loop: For, product: Contract) -> int:
    """Return how many steps one read of the left operand may take: those whose elements lie side by side."""
    buffer, name = frame.buffers[product.left.buffer], loop.variable
    inner = inner_axis(buffer)
    indices = product.left.indices
    others = (index for at, index in enumerate(indices) if at != inner and isinstance(index, Expr))
    if inner >= len(indices) or indices[inner] != Name(name) or any(name in names_in(other) for other in others):
        return 1
    most = math.gcd(frame.number(loop.stop, name), frame.unroll_of(loop))
    tile = shaped(product.left, frame.buffers)
    vector = WIDEST // DTYPE_BYTES[buffer.dtype]
    while vector > 1:
        inside = frame.child()
        _count(inside, name, vector, loop.stop)
        if most % vector == 0 and aligned(inside, tile, tile.axes, vector):
            return vector
        vector //= 2
    return 1


def _count(frame: CudaFrame, name: str, vector: int, stop: Expr) -> None:
    """Let a variable run over the multiples of `vector` below `stop`."""
    if vector == 1:
        frame.declare(name, ZERO, stop)
        return
    frame.declare(f"{name}#", ZERO, Number(frame.number(stop, name) // vector))
    frame.define(name, Binary("*", Name(f"{name}#"), Number(vector)))


class _Reads:
    """The fragments of both operands of a product and how a loop over its steps reads them."""

    def __init__(self, frame: CudaFrame, loop: For, product: Contract, vector: int) -> None:
        self.loop, self.product, self.vector = loop, product, vector
        self.names = list(frame.fresh("left", "right"))
        self.holds: tuple[Hold, Hold] = frame.holds(frame.buffers[product.target.buffer])  # type: ignore[assignment]
        self.step = next(frame.fresh("step"))

    def declare(self, frame: CudaFrame, side: int, slots: str) -> None:
        """Declare the registers of one operand."""
        ref = (self.product.left, self.product.right)[side]
        vector = self.vector if side == 0 else 1
        declare_fragment(frame, shaped(ref, frame.buffers), self.holds[side], f"{self.names[side]}{slots}", vector)

    def load(self, frame: CudaFrame, side: int, slot: str, where: dict[str, Expr]) -> None:
        """Load one operand's fragment, with variables of the product put at `where`."""
        ref = substitute((self.product.left, self.product.right)[side], where)
        assert isinstance(ref, Ref)  # as it was
        vector = self.vector if side == 0 else 1
        tile = shaped(ref, frame.buffers)
        load_fragment(frame, tile, self.holds[side], f"{self.names[side]}{slot}", [], vector)

    def head(self, frame: CudaFrame) -> str:
        """Print the head of the loop, with its pragma before it."""
        name = self.loop.variable
        frame.writer.pragma(f"unroll {max(1, frame.unroll_of(self.loop) // self.vector)}")
        add = f"++{name}" if self.vector == 1 else f"{name} += {self.vector}"
        return f"for (int {name} = 0; {name} < {frame.c(self.loop.stop, 4)}; {add})"

    def step_head(self, frame: CudaFrame) -> str:
        """Print the head of the loop over the steps that one read of the left operand takes."""
        frame.writer.pragma("unroll")
        return f"for (int {self.step} = 0; {self.step} < {self.vector}; ++{self.step})"

    def inside(self, frame: CudaFrame) -> CudaFrame:
        """Return the frame of the loop's body."""
        inner = frame.child()
        _count(inner, self.loop.variable, self.vector, self.loop.stop)
        inner.declare(self.step, ZERO, Number(self.vector))
        inner.unroll(self.step)
        if self.unrolled(frame):
            inner.unroll(self.loop.variable)
        return inner

    def unrolled(self, frame: CudaFrame) -> bool:
        """Whether every turn of the loop is a copy of its own."""
        return frame.unroll_of(self.loop) >= frame.number(self.loop.stop, self.loop.variable)


def lower_along(frame: CudaFrame, loop: For, product: Contract, vector: int) -> None:
    """Lower a loop over steps, `vector` of them a turn: so many elements of a row of the left operand in one read."""
    writer, name = frame.writer, loop.variable
    reads = _Reads(frame, loop, product, vector)
    with writer.block(reads.head(frame)):
        inner = reads.inside(frame)
        reads.declare(inner, 0, "")
        reads.load(inner, 0, "", {})
        with writer.block(reads.step_head(frame)):
            reads.declare(inner, 1, "")
            reads.load(inner, 1, "", {name: Binary("+", Name(name), Name(reads.step))})
            multiply(inner, product.target.buffer, reads.holds, reads.names, f"[{reads.step}]")


def reads_over(frame: CudaFrame, loop: For) -> tuple[For, Contract] | None:
    """Return the steps and the product of a pipeline's loop that waits for a slot, multiplies it and lets it go.

    Its steps keep two fragments: then the first ones of the next slot are read ahead too.
    """
    if loop.stages is None or len(loop.body) < 2:
        return None
    wait, steps = loop.body[:2]
    if not isinstance(wait, Wait) or not isinstance(steps, For):
        return None
    if steps.stages is None or wait.slot != Name(loop.variable):
        return None
    product = steps_of(frame, steps)
    if product is None or frame.proofs.number(frame.tidy(steps.stages)) != FRAGMENTS:
        return None
    rings = all(
        frame.buffers[ref.buffer].ring and ref.indices and ref.indices[0] == Name(loop.variable)
        for ref in (product.left, product.right)
    )
    turns = frame.number(steps.stop, steps.variable) // run_along(frame, steps, product)
    # The next slot is waited for before this one is let go: it must be another.
    apart = frame.number(loop.stages, "pipeline_stage") > frame.number(loop.step, "step")
    return (steps, product) if rings and apart and turns % FRAGMENTS == 0 else None


def lower_over_wait(
    frame: CudaFrame,
    loop: For,
    found: tuple[For, Contract],
    lower_body: Callable[[CudaFrame, tuple[Statement, ...]], None],
) -> None:
    """Lower such a loop: fragments of the next step, or of the next slot's first, are read while one is multiplied."""
    steps, product = found
    wait = loop.body[0]
    assert isinstance(wait, Wait)  # the caller looked
    assert loop.stages is not None
    writer, name, kk = frame.writer, loop.variable, steps.variable
    vector = run_along(frame, steps, product)
    reads = _Reads(frame, steps, product, vector)
    slot, following, more = frame.fresh("slot", "next", "more")
    stop = frame.c(loop.stop, 4)
    for side in (0, 1):
        reads.declare(frame, side, f"[{FRAGMENTS}]")
    begin = frame.child()
    begin.replace(name, loop.start)
    some = frame.proofs.holds(frame.tidy(Binary("<", loop.start, loop.stop)))
    with writer.scope() if some else writer.block(f"if ({frame.c(loop.start)} < {stop})"):
        lower_wait(begin, wait)
        for side in (0, 1):
            reads.load(begin, side, "[0]", {kk: ZERO})
    inner = frame.child()
    inner.declare(name, loop.start, frame.behind_last(loop))
    add = f"++{name}" if frame.tidy(loop.step) == Number(1) else f"{name} += {frame.c(loop.step)}"
    with writer.block(f"for ({frame.integer} {name} = {frame.c(loop.start)}; {name} < {stop}; {add})"):
        here = inner.tidy(Binary("%", Name(name), loop.stages))
        later = Binary("+", Name(name), loop.step)
        writer.line(f"const int {slot} = {inner.c(here)};")
        inner.define(slot, here)
        inner.aliased(slot, here)
        writer.line(f"const bool {more} = {inner.c(later)} < {stop};")
        # Behind the last slot it is read once more, for nobody: what comes next there may not have landed.
        writer.line(f"const int {following} = {more} ? {frame.c(Binary('%', later, loop.stages), 3)} : {slot};")
        inner.declare(following, ZERO, loop.stages)
        with writer.block(reads.head(frame)):
            turn = reads.inside(inner)
            with writer.block(f"if ({more} && {kk} + {vector} == {frame.c(steps.stop, 4)})"):
                lower_wait(turn, Wait(wait.barrier, Name(following)))
            _load_next(turn, reads, 0, (name, slot, following), vector)
            if vector > 1:
                with writer.block(reads.step_head(frame)):
                    _load_next(turn, reads, 1, (name, slot, following), vector)
                    _multiply_here(turn, reads, vector)
            else:
                _load_next(turn, reads, 1, (name, slot, following), vector)
                _multiply_here(turn, reads, vector)
        lower_body(inner, loop.body[2:])


def _load_next(frame: CudaFrame, reads: _Reads, side: int, names: tuple[str, str, str], vector: int) -> None:
    """Load what an operand needs for the next step, or for the first one of the next slot."""
    name, slot, following = names
    kk, stop = reads.loop.variable, frame.c(reads.loop.stop, 4)
    ahead, source = frame.fresh(f"{('left', 'right')[side]}_step", f"{('left', 'right')[side]}_slot")
    after = f"{kk} + {vector}" if side == 0 or vector == 1 else f"{kk} + {reads.step} + 1"
    frame.writer.line(f"const int {ahead} = ({after}) % {stop};")
    frame.writer.line(f"const int {source} = {ahead} > 0 ? {slot} : {following};")
    inner = frame.child()
    _count(inner, ahead, vector if side == 0 else 1, reads.loop.stop)
    inner.declare(source, ZERO, frame.buffers[reads.product.left.buffer].shape[0])
    if reads.unrolled(frame):
        inner.unroll(ahead)
    turn = f"{ahead} / {vector}" if side == 0 and vector > 1 else ahead
    reads.load(inner, side, f"[{turn} % {FRAGMENTS}]", {name: Name(source), kk: Name(ahead)})


def _multiply_here(frame: CudaFrame, reads: _Reads, vector: int) -> None:
    kk = reads.loop.variable
    left = f"{reads.names[0]}[{kk if vector == 1 else f'{kk} / {vector}'} % {FRAGMENTS}]"
    right = f"{reads.names[1]}[{kk if vector == 1 else reads.step} % {FRAGMENTS}]"
    along = f"[{reads.step}]" if vector > 1 else ""
    multiply(frame, reads.product.target.buffer, reads.holds, [left, right], along, serpentine=True)
