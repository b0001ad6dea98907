"""Which thread holds which elements of a register buffer: spreads bound to the threads of a team.

Along an axis of ``T threads, e each`` a thread holds its elements in runs of g neighbours (see `program.Threads`):
element e of thread t is at ``e/g * T*g + t*g + e%g``. Neighbouring threads then read neighbouring 16 bytes of shared
memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from cake_tui.ir.expr import All, Expr, Number, Ref, Span, names_in, refs_in
from cake_tui.ir.program import (
    Assign,
    Atomic,
    Buffer,
    Contract,
    Convert,
    Copy,
    Fragment,
    Pick,
    Reduce,
    Split,
    Statement,
    Threads,
)
from cake_tui.ir.walk import walk_body

GROUPS = (4, 2)
SUMS = "m16n8k16.acc"


class Hold(msgspec.Struct, frozen=True):
    """One axis of a register buffer: thread ``t / stride % threads`` of the team has `each` of its elements."""

    threads: int
    each: int
    stride: int
    each_expr: Expr
    threads_expr: Expr = Number(1)
    run: int = 0  # as the spread says it; 0 where it says nothing
    fragment: str = ""  # row or column of an mma's sums: each warp has a block of 16 x 8 tiles

    @property
    def group(self) -> int:
        """Elements that lie side by side."""
        if self.fragment:
            return 2 if self.fragment == "column" else 1
        if self.threads == 1:
            return self.each
        return self.run or next((size for size in GROUPS if self.each % size == 0), 1)

    @property
    def key(self) -> tuple[int, int, int, int]:
        """What two holds of the same elements by the same threads share."""
        return self.threads, self.each, self.stride, self.group

    @property
    def extent(self) -> int:
        """Elements of the axis."""
        return self.threads * self.each


Holds = tuple[Hold, ...]


def alone(extent: int, expr: Expr) -> Hold:
    """Return the hold of an axis that every thread has whole."""
    return Hold(1, extent, 1, expr)


class Warps(msgspec.Struct, frozen=True):
    """How the warps of a team share the sums of an mma: a grid of warps, each with so many tiles of 16 x 8."""

    down: int
    across: int
    rows: int  # tiles of a warp
    columns: int

    @property
    def holds(self) -> Holds:
        """Who holds the sums. Strides below zero are no thread's plain ones."""
        return (
            Hold(8 * self.down, 2 * self.rows, -8, Number(2 * self.rows), fragment="row"),
            Hold(4 * self.across, 2 * self.columns, -4, Number(2 * self.columns), fragment="column"),
        )


def warps_of(rows: int, columns: int, warps: int) -> Warps | None:
    """Share a block among warps so that each reads least; None where tiles of 16 x 8 do not go round."""
    fits = [
        Warps(down, warps // down, rows // (16 * down), columns // (8 * (warps // down)))
        for down in range(1, warps + 1)
        if warps % down == 0 and rows % (16 * down) == 0 and columns % (8 * (warps // down)) == 0
    ]
    return min(fits, key=lambda one: (16 * one.rows + 8 * one.columns, one.down), default=None)


class Spreads:
    """The holds of a launch's register buffers; `numbers` are those of their spreads."""

    def __init__(
        self, buffers: Mapping[str, Buffer], body: Iterable[Statement], numbers: Mapping[str, tuple[int, ...]]
    ) -> None:
        self.buffers = buffers
        # Of each register buffer: threads, elements each and runs; or extents, and the warps that share a fragment.
        self.numbers = numbers
        self.holds: dict[str, Holds] = {}
        self.warps: dict[str, Warps] = {}  # of an mma's sums, and of its operands as they go into them
        self._natural()
        statements = walk_body(tuple(body))
        while any(self._learn(statement) for statement in statements):
            pass
        for name, buffer in buffers.items():
            if buffer.space == "register" and name not in self.holds and isinstance(buffer.spread, Threads):
                self.holds[name] = self._strided(buffer)

    def _natural(self) -> None:
        """Settle what needs no other buffer: tiles of two axes and more, and what each thread has whole."""
        for name, buffer in self.buffers.items():
            if buffer.space != "register":
                continue
            if isinstance(buffer.spread, Threads) and len(buffer.shape) > 1:
                self.holds[name] = self._strided(buffer)
            elif isinstance(buffer.spread, Fragment) and buffer.spread.name == SUMS and len(buffer.shape) == 2:
                shared = warps_of(*self.numbers[name])
                if shared is not None:
                    self.holds[name] = shared.holds
                    self.warps[name] = shared
            elif buffer.spread is None:
                self.holds[name] = tuple(
                    alone(number, extent) for number, extent in zip(self.numbers[name], buffer.shape)
                )

    def _strided(self, buffer: Buffer) -> Holds:
        assert isinstance(buffer.spread, Threads)
        numbers = self.numbers[buffer.name]
        count = len(buffer.spread.threads)
        made: list[Hold] = []
        stride = 1
        strides = {}
        for axis in reversed(buffer.order or range(count)):
            strides[axis] = stride
            stride *= numbers[axis]
        for axis in range(count):
            threads, each = numbers[axis], numbers[count + axis]
            run = numbers[2 * count + axis] if len(numbers) > 2 * count else 0
            spread = buffer.spread
            made.append(Hold(threads, each, strides[axis], spread.each[axis], spread.threads[axis], run))
        return tuple(made)

    def _learn(self, statement: Statement) -> bool:
        """Settle buffers of one axis by what a statement has them stand beside; True where one was."""
        match statement:
            case Contract(target=target, left=left, right=right, op="mma") if target.buffer in self.warps:
                self.warps[left.buffer] = self.warps[right.buffer] = self.warps[target.buffer]
                return False
            case Contract(target=target, left=left, right=right, op="outer"):
                holds = self._of(target)
                if len(holds) != 2:
                    return False
                return any([self._give(left, (holds[0],)), self._give(right, (holds[1],))])
            case Reduce(source=source, axis=axis, target=target):
                return self._folded(source, axis, (target,))
            case Pick(source=source, axis=axis, values=values, indices=indices):
                return self._folded(source, axis, (values, indices))
            case Copy(source=source, target=target) | Convert(source=source, target=target):
                return self._beside((source, target)) if not isinstance(statement, Convert) else False
            case Split(source=source, parts=parts):
                return self._beside((source, *parts))
            case Assign(target=target, value=value) | Atomic(target=target, value=value):
                refs = (target, *refs_in(value))
                return any([self._beside(refs), *(self._indexed(ref, refs) for ref in refs)])
            case _:
                return False

    def _of(self, ref: Ref) -> Holds:
        return self.holds.get(ref.buffer, ()) if self.buffers[ref.buffer].space == "register" else ()

    def _folded(self, source: Ref, axis: int, targets: tuple[Ref, ...]) -> bool:
        holds = self._of(source)
        if not holds or source.indices:
            return False
        left = tuple(hold for at, hold in enumerate(holds) if at != axis)
        back = [self._give(target, left) for target in targets]
        return any(back)

    def _beside(self, refs: tuple[Ref, ...]) -> bool:
        """Whole tiles of one statement are held alike, aligned at their last axes."""
        whole = [ref for ref in refs if not ref.indices and self.buffers[ref.buffer].space == "register"]
        found = False
        for known in whole:
            for ref in whole:
                if len(self._of(known)) >= len(self.buffers[ref.buffer].shape) > 0:
                    holds = self._of(known)
                    found |= self._give(ref, holds[len(holds) - len(self.buffers[ref.buffer].shape) :])
        return found

    def _indexed(self, ref: Ref, refs: tuple[Ref, ...]) -> bool:
        """``acc[i, j]*top[i]``: an index with the coordinate of another's axis shares its hold."""
        if len(ref.indices) != 1 or self.buffers[ref.buffer].space != "register" or ref.buffer in self.holds:
            return False
        named = {index.axis for other in refs for index in other.indices if isinstance(index, Span) and index.axis}
        mine = _coordinates(ref.indices[0]) & named
        for other in refs:
            for index, hold in zip(other.indices, self._of(other)):
                if _coordinates(index) & mine:
                    return self._give(ref, (hold,))
        return False

    def _give(self, ref: Ref, holds: Holds) -> bool:
        """Let a buffer without holds have these where its own spread says the same numbers."""
        name = ref.buffer
        buffer = self.buffers[name]
        if buffer.space != "register" or name in self.holds or not isinstance(buffer.spread, Threads):
            return False
        count = len(buffer.spread.threads)
        mine = tuple(hold.key for hold in self._strided(buffer))
        if count != len(holds) or any(
            (threads, each, group) != (hold.threads, hold.each, hold.group)
            for (threads, each, _, group), hold in zip(mine, holds)
        ):
            return False
        self.holds[name] = holds
        return True


def _coordinates(index: Expr | Span | All) -> frozenset[str]:
    if isinstance(index, Span):
        return frozenset((index.axis,)) if index.axis else frozenset()
    return frozenset() if isinstance(index, All | Number) else names_in(index)
