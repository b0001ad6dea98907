"""What a problem's family says of its buffers: axes, factors, what is combined, whether the value is exact."""

from __future__ import annotations

import math

from cake_tui.ir.expr import Binary, Call, Number, evaluate_int, parse, walk
from cake_tui.model.problem import BufferSpec, Problem, Shape

# Functions and operators after which a value of whole numbers is still exact in fp32.
_EXACT_CALLS = frozenset(["relu", "min", "max", "abs", "select", "f32", "f64", "floor", "ceil"])
_EXACT_OPERATORS = frozenset(["+", "-", "<", "<=", ">", ">=", "==", "!=", "and", "or"])


def axes(spec: BufferSpec) -> tuple[str, ...]:
    """Return the letter by which a value's indices name each axis: the size's name in lower case."""
    return tuple(text.strip().lower() for text in spec.shape)


def dimensions(spec: BufferSpec, shape: Shape) -> tuple[int, ...]:
    """Return the buffer's dimensions; raises ParseError or EvaluationError."""
    return tuple(evaluate_int(parse(text), dict(shape.sizes)) for text in spec.shape)


def inputs_of(problem: Problem) -> tuple[BufferSpec, ...]:
    """Return the buffers that a kernel reads."""
    return tuple(spec for spec in problem.buffers if spec.role != "out")


def outputs_of(problem: Problem) -> tuple[BufferSpec, ...]:
    """Return the buffers that a kernel writes."""
    return tuple(spec for spec in problem.buffers if spec.role != "in")


def operands(problem: Problem) -> tuple[BufferSpec, BufferSpec] | None:
    """Return the two factors of a contraction: its first two inputs; None for other families."""
    found = inputs_of(problem)
    return (found[0], found[1]) if problem.family == "contraction" and len(found) >= 2 else None


def contracted_axes(problem: Problem) -> tuple[str, ...]:
    """Return the axes that both factors of a contraction, or the first input of a reduction, have beyond the output."""
    factors = operands(problem)
    if factors is None and problem.family != "reduction":
        return ()
    kept = set(axes(outputs_of(problem)[0]))
    first = inputs_of(problem)[0]
    inside = axes(factors[1]) if factors is not None else axes(first)
    return tuple(axis for axis in axes(first) if axis in inside and axis not in kept)


def contracted_length(problem: Problem, shape: Shape) -> int:
    """Return how many terms one output combines; 1 for elementwise kernels."""
    first = inputs_of(problem)[0]
    sizes = dict(zip(axes(first), dimensions(first, shape)))
    return math.prod(sizes[axis] for axis in contracted_axes(problem))


def largest_integer(length: int) -> int:
    """Return the largest whole number of the check's integers: sums of so many products stay below 2^24, any order."""
    return max(1, min(8, math.isqrt(2**23 // max(length, 1))))


def is_exact(value: str) -> bool:
    """Say whether `value` of whole numbers is computed without rounding (identity, relu, sums, comparisons)."""
    for node in walk(parse(value)):
        match node:
            case Binary(op=op) if op not in _EXACT_OPERATORS:
                return False
            case Call(function=function) if function not in _EXACT_CALLS:
                return False
            case Number(value=found) if found != int(found):
                return False
    return True
