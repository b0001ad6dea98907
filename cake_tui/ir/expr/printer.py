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
    if type(expr) is Name:
        return expr.name
    if type(expr) is Number:
        return "inf" if expr.value == float("inf") else repr(expr.value)
    if type(expr) is Binary:
        level = PRECEDENCE[expr.op]
        inner = level + 1 if expr.op in COMPARISONS else level
        gap = "" if expr.op in _TIGHT else " "
        text = f"{show(expr.left, inner)}{gap}{expr.op}{gap}{show(expr.right, level + 1)}"
        return f"({text})" if level < least else text
    if type(expr) is Ref:
        return show_ref(expr)
    if type(expr) is Call:
        return f"{expr.function}({', '.join([show(argument) for argument in expr.arguments])})"
    assert type(expr) is Unary  # the last kind there is
    sign, tight = ("-", _MINUS) if expr.op == "-" else ("not ", _NOT)
    text = f"{sign}{show(expr.operand, tight)}"
    return f"({text})" if least > tight else text


def show_ref(ref: Ref) -> str:
    """Print a reference."""
    return f"{ref.buffer}[{', '.join(_index(index) for index in ref.indices)}]" if ref.indices else ref.buffer


def _index(index: Index) -> str:
    if type(index) is All:
        return ":"
    if type(index) is Span:
        run = f"{show(index.start)} +: {show(index.length)}"
        return f"{index.axis} in {run}" if index.axis else run
    return show(index)  # type: ignore[arg-type]
