"""Turns expressions into affine forms and spans of numbers; what is not affine becomes a bounded variable."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from cake_tui.ir.analysis.affine import Affine, Scope
from cake_tui.ir.analysis.affine import Number as Rational
from cake_tui.ir.expr.nodes import Binary, Call, Expr, Name, Number, Unary
from cake_tui.ir.expr.printer import show

Names = Mapping[str, Affine]
_ARITHMETIC = frozenset("+-*/%")


class Unbounded(ValueError):
    """An expression whose value the analysis cannot bound: it reads a buffer, or multiplies two variables."""


def form_of(expr: Expr, names: Names, scope: Scope, known: dict[Expr, Affine] | None = None) -> Affine:
    """Return `expr` as an affine form; floor, ceil, %, min and max declare variables in `scope`. Raises Unbounded.

    `known` holds forms found before, of the same names in the same scope; forms of what is inside `expr` are added.
    """
    if type(expr) is Name:
        if expr.name not in names:
            raise Unbounded(show(expr))
        return names[expr.name]
    if type(expr) is Number:
        return Affine((), _whole(expr))
    if known is None:
        return _form(expr, names, scope, known)
    form = known.get(expr)
    if form is None:
        form = known[expr] = _form(expr, names, scope, known)
    return form


def _form(expr: Expr, names: Names, scope: Scope, known: dict[Expr, Affine] | None) -> Affine:
    if type(expr) is Binary and expr.op in _ARITHMETIC:
        left, right = form_of(expr.left, names, scope, known), form_of(expr.right, names, scope, known)
        return _binary(expr.op, left, right, scope, expr)
    match expr:
        case Unary("-", operand):
            return -form_of(operand, names, scope, known)
        case Call("floor", (operand,)):
            return floor_of(form_of(operand, names, scope, known), scope)
        case Call("ceil", (operand,)):
            return -floor_of(-form_of(operand, names, scope, known), scope)
        case Call("min" | "max" as function, arguments):
            return _extreme(function, [form_of(argument, names, scope, known) for argument in arguments], scope)
        case Call("i32", (operand,)):
            return form_of(operand, names, scope, known)
    raise Unbounded(show(expr))


def _whole(number: Number) -> int:
    if isinstance(number.value, float) and not number.value.is_integer():
        raise Unbounded(show(number))
    return int(number.value)


def _binary(op: str, left: Affine, right: Affine, scope: Scope, expr: Expr) -> Affine:
    if op == "+":
        return left + right
    if op == "-":
        return left - right
    if op == "*":
        if (factor := right.value) is not None:
            return left.times(factor)
        if (factor := left.value) is not None:
            return right.times(factor)
        raise Unbounded(show(expr))
    divisor = right.value
    if not divisor:
        raise Unbounded(show(expr))
    if op == "/":
        return left.over(divisor)
    return left.plus(floor_of(left.over(divisor), scope), -divisor)


def floor_of(form: Affine, scope: Scope) -> Affine:
    """Return floor(form): whole parts leave it, what is left is a number where its bounds agree, else a variable."""
    constant = math.floor(form.constant)
    if all(type(value) is int for _, value in form.terms):
        return Affine(form.terms, constant)
    whole: dict[str, Rational] = {}
    rest: dict[str, Rational] = {}
    for name, value in form.terms:
        (whole if isinstance(value, int) else rest)[name] = value
    left = Affine.of(rest, form.constant - constant)
    outside = Affine.of(whole, constant)
    name = f"floor({left})"
    if name not in scope.bounds:
        low, high = math.floor(scope.least(left)), math.floor(scope.greatest(left))
        if low == high:
            return outside + low
        step = Fraction(1)
        for _, value in left.terms:
            step = min(step, Fraction(1, Fraction(value).denominator))
        lowest = left - (1 - step)
        scope.declare_between(name, (lowest, Affine.number(low)), (left, Affine.number(high)), exact=True)
    return outside + Affine.variable(name)


def _extreme(function: str, forms: list[Affine], scope: Scope) -> Affine:
    values = [form.value for form in forms]
    if all(value is not None for value in values):
        known = [value for value in values if value is not None]
        return Affine.number(min(known) if function == "min" else max(known))
    name = f"{function}({', '.join(str(form) for form in forms)})"
    if name not in scope.bounds:
        if function == "min":
            lows = [Affine.number(min(scope.least(form) for form in forms))]
            scope.declare_between(name, lows, forms)
        else:
            highs = [Affine.number(max(scope.greatest(form) for form in forms))]
            scope.declare_between(name, forms, highs)
    return Affine.variable(name)
