"""Widths of global accesses, constants of knobs, order of a grid: what structures of all families on a GPU share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cake_tui.ir.expr import Number
from cake_tui.ir.program import DTYPE_BYTES, Axis, Const
from cake_tui.model.schedule import Knob, KnobValue

WIDEST = 16  # bytes of one load or store
SECOND_AXIS = 65535  # blocks along y; x takes 2^31 - 1


def vectors(dtype: str) -> tuple[int, ...]:
    """Return the legal elements of one access: powers of two up to 16 bytes."""
    return tuple(count for count in (1, 2, 4) if count * DTYPE_BYTES[dtype] <= WIDEST)


def widest(dtype: str, lengths: Iterable[int]) -> int:
    """Return the widest access that divides rows of all these lengths."""
    rows = tuple(lengths)
    return max(count for count in vectors(dtype) if not any(length % count for length in rows))


def constants(
    knobs: Mapping[str, KnobValue], known: tuple[Knob, ...], unfelt: tuple[str, ...] = ()
) -> tuple[Const, ...]:
    """Return the numeric knobs that a program feels as constants with their other legal values."""
    return tuple(
        Const(knob.name, Number(value), tuple(int(other) for other in knob.values))
        for knob in known
        if not isinstance(value := knobs[knob.name], bool | str) and knob.name not in unfelt
    )


def grid_of(slow: Axis, fast: Axis, slow_blocks: int) -> tuple[Axis, Axis]:
    """Return two axes of a grid, the one that should be fastest last, unless the other has more blocks than y takes."""
    return (fast, slow) if slow_blocks > SECOND_AXIS else (slow, fast)
