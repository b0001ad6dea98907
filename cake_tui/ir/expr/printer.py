"""Prints expressions in their one canonical form: ``*`` tight, ``+`` spaced, no needless parenthesis."""

from __future__ import annotations

from cake_tui.ir.expr.nodes import (
    COMPARISONS,
    PRECEDENCE,
    All,
    Binary,
    Call,
    Expr,
    Index,
    Name,
    Number,
    Ref,
    Span,
    Unary,
)

_TIGHT = ("*", "/", "%")
_NOT = PRECEDENCE["<"]  # looser than a comparison, tighter than and
_MINUS = PRECEDENCE["*"] + 1


def show(expr: Expr, least: int = 0) -> str:
    """Print `expr`, in parentheses where its operator binds more loosely than `least`."""
    match expr:
        case Number(value):
            text = "inf" if value == float("inf") else repr(value)
        case Name(name):
            text = name
        case Unary("-", operand):
            text = f"-{show(operand, _MINUS)}"
            return f"({text})" if least > _MINUS else text
        case Unary(_, operand):
            text = f"not {show(operand, _NOT)}"
            return f"({text})" if least > _NOT else text
        case Binary(op, left, right):
            level = PRECEDENCE[op]
            inner = level + 1 if op in COMPARISONS else level
            gap = "" if op in _TIGHT else " "
            text = f"{show(left, inner)}{gap}{op}{gap}{show(right, level + 1)}"
            return f"({text})" if level < least else text
        case Call(function, arguments):
            text = f"{function}({', '.join(show(argument) for argument in arguments)})"
        case Ref():
            text = show_ref(expr)
    return text


def show_ref(ref: Ref) -> str:
    """Print a reference."""
    return f"{ref.buffer}[{', '.join(_index(index) for index in ref.indices)}]" if ref.indices else ref.buffer


def _index(index: Index) -> str:
    match index:
        case All():
            return ":"
        case Span(start, length, axis):
            return f"{axis} in {show(start)} +: {show(length)}" if axis else f"{show(start)} +: {show(length)}"
        case _:
            return show(index)
