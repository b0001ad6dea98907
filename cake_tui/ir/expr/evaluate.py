"""Evaluates expressions over numbers: whole-number division stays exact until ceil or floor rounds it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

from cake_tui.ir.expr.nodes import Binary, Call, Expr, Name, Number, Ref, Unary
from cake_tui.ir.expr.printer import show

Value = int | float | bool
_Exact = int | float | Fraction
_HUGE = 1 << 200


class EvaluationError(ValueError):
    """An expression without a value: a name that is not there, a division by zero, a square root of -1."""


def evaluate(expr: Expr, names: Mapping[str, Value]) -> Value:
    """Return the expression's value; a fraction that stays comes back as a float. Raises EvaluationError."""
    found = _value(expr, names)
    if isinstance(found, int | float):
        return found
    return int(found) if found.denominator == 1 else float(found)


def evaluate_int(expr: Expr, names: Mapping[str, Value]) -> int:
    """Return a whole value; raises EvaluationError where it is none (a tile that does not divide its size)."""
    found = evaluate(expr, names)
    if isinstance(found, bool) or (isinstance(found, float) and not found.is_integer()):
        raise EvaluationError(f"{show(expr)} is {found}, not a whole number")
    return int(found)


def evaluate_bool(expr: Expr, names: Mapping[str, Value]) -> bool:
    """Return the truth of a condition; raises EvaluationError where it is a number."""
    found = evaluate(expr, names)
    if not isinstance(found, bool):
        raise EvaluationError(f"{show(expr)} is the number {found}, not a condition")
    return found


def _value(expr: Expr, names: Mapping[str, Value]) -> _Exact:
    # By exact type: `match` asks one class after the other whether it has the node, slowly for structs.
    if type(expr) is Number:
        return expr.value
    if type(expr) is Name:
        if expr.name not in names:
            known = ", ".join(sorted(names)) or "none"
            raise EvaluationError(f"no value for {expr.name}; known names: {known}")
        return names[expr.name]
    if type(expr) is Binary:
        if expr.op == "and":
            return bool(_value(expr.left, names)) and bool(_value(expr.right, names))
        if expr.op == "or":
            return bool(_value(expr.left, names)) or bool(_value(expr.right, names))
        return _binary(expr.op, _value(expr.left, names), _value(expr.right, names), expr)
    if type(expr) is Unary:
        operand = _value(expr.operand, names)
        return -operand if expr.op == "-" else not operand
    if type(expr) is Call:
        if expr.function == "select":
            condition, yes, no = expr.arguments
            return _value(yes, names) if _value(condition, names) else _value(no, names)
        return _call(expr.function, [_value(argument, names) for argument in expr.arguments], expr)
    assert type(expr) is Ref  # the last kind there is
    raise EvaluationError(f"{expr.buffer} is a buffer: {show(expr)} has no value here")


def _binary(op: str, left: _Exact, right: _Exact, expr: Expr) -> _Exact:
    try:
        match op:
            case "+":
                found: _Exact = left + right
            case "-":
                found = left - right
            case "*":
                found = left * right
            case "/":
                found = _quotient(left, right)
            case "%":
                found = left % right
            case _:
                return _compare(op, left, right)
    except (ZeroDivisionError, OverflowError) as error:
        raise EvaluationError(f"{show(expr)}: {error}") from None
    if isinstance(found, int) and abs(found) > _HUGE:
        raise EvaluationError(f"{show(expr)} is too large")
    return found


def _quotient(left: _Exact, right: _Exact) -> _Exact:
    if type(left) is int and type(right) is int and left % right == 0:
        return left // right
    if isinstance(left, float) or isinstance(right, float):
        return left / right
    found = Fraction(left) / right
    return int(found) if found.denominator == 1 else found


def _compare(op: str, left: _Exact, right: _Exact) -> bool:
    match op:
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right
        case "==":
            return left == right
        case _:
            return left != right


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


_REAL: Mapping[str, Callable[[float], float]] = {
    "gelu_erf": lambda x: x * 0.5 * math.erfc(-x / math.sqrt(2)),
    "gelu_tanh": lambda x: x * _sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)),
    "silu": lambda x: x * _sigmoid(x),
    "sigmoid": _sigmoid,
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "tanh": math.tanh,
    "erf": math.erf,
    "sin": math.sin,
    "cos": math.cos,
}


def _extreme(function: str, values: list[_Exact]) -> _Exact:
    found = values[0]
    for value in values[1:]:
        if value < found if function == "min" else value > found:
            found = value
    return found


def _call(function: str, values: list[_Exact], expr: Expr) -> _Exact:
    first: _Exact = values[0]
    try:
        match function:
            case "ceil":
                return math.ceil(first)
            case "floor":
                return math.floor(first)
            case "abs":
                return -first if first < 0 else first
            case "square":
                return first * first
            case "relu":
                return 0 * first if first < 0 else first
            case "min" | "max":
                return _extreme(function, values)
            case "pow":
                return float(first) ** float(values[1]) if first >= 0 else math.pow(float(first), float(values[1]))
            case "i32" | "u8":
                return int(first)
            case "f64" | "f32" | "f16" | "bf16" | "tf32":
                return float(first)
            case _:
                return _REAL[function](float(first))
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        raise EvaluationError(f"{show(expr)}: {error}") from None
