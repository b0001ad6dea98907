"""Expressions of the IR: typed trees from a closed list of functions, one parser, one printer, never ``eval``."""

from cake_tui.ir.expr.evaluate import EvaluationError, Value, evaluate, evaluate_bool, evaluate_int
from cake_tui.ir.expr.nodes import (
    COMPARISONS,
    FUNCTIONS,
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
    names_in,
    refs_in,
    rewrite,
    substitute,
    walk,
)
from cake_tui.ir.expr.parser import parse
from cake_tui.ir.expr.printer import show, show_ref
from cake_tui.ir.expr.tokens import ParseError

__all__ = [
    "COMPARISONS",
    "FUNCTIONS",
    "PRECEDENCE",
    "All",
    "Binary",
    "Call",
    "EvaluationError",
    "Expr",
    "Index",
    "Name",
    "Number",
    "ParseError",
    "Ref",
    "Span",
    "Unary",
    "Value",
    "evaluate",
    "evaluate_bool",
    "evaluate_int",
    "names_in",
    "parse",
    "refs_in",
    "rewrite",
    "show",
    "show_ref",
    "substitute",
    "walk",
]
