"""Work: the least that one run of a problem must do, and the throughput that follows from a time; said once for all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec

from cake_tui.ir.expr import EvaluationError, ParseError, evaluate, parse
from cake_tui.ir.program import DTYPE_BYTES
from cake_tui.model.problem import Problem


class Work(msgspec.Struct, frozen=True):
    """The least that one run must do, over the ranked shapes as the ranking weighs them; None: unknown.

    `flops` is `minimum_work`; `bytes_moved` each input read once and each output written once.
    """

    flops: float | None
    bytes_moved: float | None

    def throughput_tflops(self, time_us: float | None) -> float | None:
        """Return flops over time in TFLOP/s; None where either is unknown or zero."""
        if not self.flops or not time_us:
            return None
        return self.flops / time_us / 1e6


@lru_cache(maxsize=8)
def work(problem: Problem) -> Work:
    """Return the problem's least work; a problem that does not state it, or states nonsense, gives None."""
    sizes = [dict(shape.sizes) for shape in problem.shapes]
    return Work(
        _ranked([_value(problem.minimum_work, one) for one in sizes], problem),
        _ranked([_traffic(problem, one) for one in sizes], problem),
    )


def _traffic(problem: Problem, sizes: Mapping[str, int]) -> float | None:
    total = 0.0
    for buffer in problem.buffers:
        elements = 1.0
        for axis in buffer.shape:
            length = _value(axis, sizes)
            if length is None:
                return None
            elements *= length
        times = 2 if buffer.role == "inout" else 1
        total += elements * DTYPE_BYTES.get(buffer.dtype, 4) * times
    return total or None


def _value(text: str, sizes: Mapping[str, int]) -> float | None:
    """Evaluate an expression over the sizes; None where it has no value above zero."""
    try:
        found = float(evaluate(parse(text), sizes))
    except (ParseError, EvaluationError, OverflowError):
        return None
    return found if 0.0 < found < math.inf else None


def _ranked(values: Sequence[float | None], problem: Problem) -> float | None:
    """Weigh the shapes as the ranking weighs their times, so that work over time keeps its meaning."""
    known = [value for value in values if value is not None]
    if len(known) < len(values) or not known:
        return None
    return problem.ranked(known)
