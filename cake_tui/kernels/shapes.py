"""Shapes: the sizes of kernel.toml, changed by ``--shape M=512,N=511``, and how large a problem may be."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cake_tui.errors import UserError, did_you_mean
from cake_tui.ir.expr import EvaluationError, ParseError, evaluate_int, parse
from cake_tui.ir.origins import LARGEST_SIZE
from cake_tui.ir.program import DTYPE_BYTES
from cake_tui.model.problem import BufferSpec, Shape
from cake_tui.toml import shown

LARGEST_BUFFER = 2**31 - 1  # elements: what an int index reaches
LARGEST_BYTES = 32 << 30  # all buffers together; the check holds some of them twice in float64


def override(text: str, default: Shape) -> Shape:
    """Read ``M=512,N=512`` over a default; sizes left out keep theirs. Raises UserError for the first mistake."""
    sizes = dict(default.sizes)
    known = ", ".join(sizes)
    given: set[str] = set()
    for word in text.split(","):
        name, sign, value = (part.strip() for part in word.partition("="))
        if not sign:
            example = ",".join(f"{key}={size}" for key, size in default.sizes)
            raise UserError(f"--shape: found {shown(text[:80])}, allowed: {example}")
        if name not in sizes:
            near = did_you_mean(name.upper(), sizes)
            raise UserError(f"--shape: no size {shown(name[:40])}{near}; this kernel has {known}")
        if name in given:
            raise UserError(f"--shape: {name} is given twice in {shown(text[:80])}")
        if not re.fullmatch(r"[0-9]{1,12}", value) or not 1 <= int(value) <= LARGEST_SIZE:
            raise UserError(
                f"--shape: {name}: found {shown(value[:40])}, allowed: a whole number from 1 to {LARGEST_SIZE}"
            )
        sizes[name] = int(value)
        given.add(name)
    return Shape(tuple(sizes.items()))


def too_large(shape: Shape, buffers: Sequence[BufferSpec]) -> str | None:
    """Say in one sentence what is wrong with a problem of this size; None where it fits."""
    total = 0
    for buffer in buffers:
        elements = 1
        for extent in buffer.shape:
            try:
                size = evaluate_int(parse(extent), dict(shape.sizes))
            except (EvaluationError, ParseError, OverflowError) as error:
                return f"buffer {buffer.name}: {error} at {shape.text}"
            if size < 1:
                return f"buffer {buffer.name}: extent {extent} is {size} at {shape.text}; it must be at least 1"
            elements *= size
        if elements > LARGEST_BUFFER:
            return f"{shape.text}: buffer {buffer.name} has {elements} elements; at most {LARGEST_BUFFER}"
        total += elements * DTYPE_BYTES[buffer.dtype]
    if total > LARGEST_BYTES:
        return f"{shape.text}: the buffers take {total / 2**30:.1f} GiB together; at most {LARGEST_BYTES >> 30}"
    return None
