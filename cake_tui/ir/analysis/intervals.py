"""Least and greatest values of expressions whose names run through spans; each expression is compiled once.

Laws ask for the same few expressions of a builder at many places and for every candidate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NoReturn

from cake_tui.ir.analysis.affine import Number as Rational
from cake_tui.ir.analysis.affine import quotient
from cake_tui.ir.analysis.boxes import Reach, Spans
from cake_tui.ir.analysis.forms import Unbounded
from cake_tui.ir.expr.nodes import Binary, Call, Expr, Name, Number, Unary
from cake_tui.ir.expr.printer import show

_Interval = tuple[Rational, Rational]
_Evaluator = Callable[[Spans], _Interval]


def span_of(expr: Expr, spans: Spans) -> Reach:
    """Return the least and greatest whole value of `expr` when each name runs through its span. Raises Unbounded."""
    low, high = _evaluator(expr)(spans)
    return (low, high) if type(low) is int and type(high) is int else (math.ceil(low), math.floor(high))


@lru_cache(maxsize=1 << 13)
def _evaluator(expr: Expr) -> _Evaluator:
    if isinstance(expr, Name):
        return _name(expr)
    if isinstance(expr, Number):
        return _number(expr)
    if isinstance(expr, Binary) and expr.op in _BINARY:
        return _BINARY[expr.op](_evaluator(expr.left), _evaluator(expr.right), expr)
    match expr:
        case Unary("-", operand):
            return _negative(_evaluator(operand))
        case Call("floor" | "ceil" as function, (operand,)):
            return _rounded(math.floor if function == "floor" else math.ceil, _evaluator(operand))
        case Call("min" | "max" as function, arguments):
            return _extreme(min if function == "min" else max, [_evaluator(argument) for argument in arguments])
        case Call("i32", (operand,)):
            return _evaluator(operand)
    return lambda spans: _unbounded(expr)


def _unbounded(expr: Expr) -> NoReturn:
    raise Unbounded(show(expr))


def _name(expr: Name) -> _Evaluator:
    name = expr.name

    def evaluate(spans: Spans) -> _Interval:
        return spans[name] if name in spans else _unbounded(expr)

    return evaluate


def _number(expr: Number) -> _Evaluator:
    if isinstance(expr.value, float) and not expr.value.is_integer():
        return lambda spans: _unbounded(expr)
    both = int(expr.value), int(expr.value)
    return lambda spans: both


def _negative(inner: _Evaluator) -> _Evaluator:
    def evaluate(spans: Spans) -> _Interval:
        low, high = inner(spans)
        return -high, -low

    return evaluate


def _rounded(rounding: Callable[[Rational], int], inner: _Evaluator) -> _Evaluator:
    def evaluate(spans: Spans) -> _Interval:
        low, high = inner(spans)
        return rounding(low), rounding(high)

    return evaluate


def _extreme(pick: Callable[[list[Rational]], Rational], inner: list[_Evaluator]) -> _Evaluator:
    def evaluate(spans: Spans) -> _Interval:
        inside = [one(spans) for one in inner]
        return pick([low for low, _ in inside]), pick([high for _, high in inside])

    return evaluate


def _sum(left: _Evaluator, right: _Evaluator, expr: Binary) -> _Evaluator:
    def evaluate(spans: Spans) -> _Interval:
        (low, high), (other_low, other_high) = left(spans), right(spans)
        return low + other_low, high + other_high

    return evaluate


def _difference(left: _Evaluator, right: _Evaluator, expr: Binary) -> _Evaluator:
    def evaluate(spans: Spans) -> _Interval:
        (low, high), (other_low, other_high) = left(spans), right(spans)
        return low - other_high, high - other_low

    return evaluate


def _product(left: _Evaluator, right: _Evaluator, expr: Binary) -> _Evaluator:
    def evaluate(spans: Spans) -> _Interval:
        (low, high), (other_low, other_high) = left(spans), right(spans)
        if 0 <= low <= high and 0 <= other_low <= other_high:
            return low * other_low, high * other_high
        ends = (low * other_low, low * other_high, high * other_low, high * other_high)
        return min(ends), max(ends)

    return evaluate


def _divisor(right: _Evaluator, spans: Spans, expr: Binary) -> Rational:
    low, high = right(spans)
    return low if low == high and low > 0 else _unbounded(expr)


def _ratio(left: _Evaluator, right: _Evaluator, expr: Binary) -> _Evaluator:
    def evaluate(spans: Spans) -> _Interval:
        low, high = left(spans)
        divisor = _divisor(right, spans, expr)
        return quotient(low, divisor), quotient(high, divisor)

    return evaluate


def _remainder(left: _Evaluator, right: _Evaluator, expr: Binary) -> _Evaluator:
    def evaluate(spans: Spans) -> _Interval:
        low, high = left(spans)
        divisor = _divisor(right, spans, expr)
        return (low % divisor, high % divisor) if low // divisor == high // divisor else (0, divisor - 1)

    return evaluate


_BINARY: Mapping[str, Callable[[_Evaluator, _Evaluator, Binary], _Evaluator]] = {
    "+": _sum,
    "-": _difference,
    "*": _product,
    "/": _ratio,
    "%": _remainder,
}
