"""Whole-number expressions in C: simplified by what is proven, then printed."""

from __future__ import annotations

from collections.abc import Mapping

from cake_tui.ir.expr import PRECEDENCE, Binary, Call, Expr, Name, Number, Unary, rewrite, substitute
from cake_tui.ir.lower.c.proofs import Proofs
from cake_tui.ir.refusal import refuse

_C_OPERATORS = {"and": "&&", "or": "||"}


def tidy(expr: Expr, proofs: Proofs, replaced: Mapping[str, Expr]) -> Expr:
    """Return an equal expression without what is proven needless: ``0*x``, ``min(x, y)`` where x <= y."""
    if isinstance(expr, Number | Name) and not replaced:
        return expr
    return rewrite(substitute(expr, replaced) if replaced else expr, lambda node: _simpler(node, proofs))


def _simpler(node: Expr, proofs: Proofs) -> Expr | None:
    if isinstance(node, Number | Name):
        return None
    match node:
        case Binary(op, Number(left), Number(right)) if (
            op in "+-*" and isinstance(left, int) and isinstance(right, int)
        ):
            folded = {"+": left + right, "-": left - right, "*": left * right}[op]
            return Number(folded) if folded >= 0 else None
        case Binary("+", Number(0), other) | Binary("+" | "-", other, Number(0)):
            return other
        case Binary("*", Number(0), _) | Binary("*", _, Number(0)):
            return Number(0)
        case Binary("*", Number(1), other) | Binary("*" | "/", other, Number(1)):
            return other
        case Binary("-", left, right) if left == right:
            return Number(0)
        case Call("min" | "max" as function, arguments):
            return _extreme(function, arguments, proofs)
        case Call("ceil" | "floor", (Binary("/", left, right),)):
            return _rounded(left, right, node, proofs)
        case Call("ceil" | "floor", (inner,)) if not isinstance(inner, Binary):
            return inner
        case _:
            return None


def _extreme(function: str, arguments: tuple[Expr, ...], proofs: Proofs) -> Expr:
    kept = list(arguments)
    compare = "<=" if function == "min" else ">="
    for one in arguments:
        others = [other for other in kept if other is not one]
        for other in others:
            if one in kept and proofs.surely(Binary(compare, other, one)):
                kept.remove(one)
                break
    return kept[0] if len(kept) == 1 else Call(function, tuple(kept))


def _rounded(left: Expr, right: Expr, node: Call, proofs: Proofs) -> Expr | None:
    top, bottom = proofs.number(left), proofs.number(right)
    if top is None or bottom is None or bottom == 0:
        return None
    if top % bottom == 0:
        return Number(1) if top == bottom else Binary("/", left, right)
    return Number(1) if node.function == "ceil" and top < bottom else None


def c_int(expr: Expr, least: int = 0) -> str:
    """Print a whole-number expression or a condition."""
    match expr:
        case Number(value):
            return str(value)
        case Name(name):
            return name
        case Unary("-", operand):
            return f"-{c_int(operand, 9)}"
        case Unary(_, operand):
            return f"!({c_int(operand)})"
        case Binary(op, left, right):
            level = PRECEDENCE[op]
            # Sums of sums and products of products need no parentheses on the right; a quotient there does.
            same = op == "+" or (op == "*" and isinstance(right, Binary) and right.op == "*")
            text = f"{c_int(left, level)} {_C_OPERATORS.get(op, op)} {c_int(right, level if same else level + 1)}"
            return f"({text})" if level < least else text
        case Call("ceil" | "floor" as function, (Binary("/", left, right),)):
            tight = PRECEDENCE["*"] + 1
            if function == "ceil":
                return f"ceil_div({c_int(left)}, {c_int(right)})"
            text = f"{c_int(left, tight - 1)} / {c_int(right, tight)}"
            return f"({text})" if least >= PRECEDENCE["*"] else text
        case Call("min" | "max" as function, (first, *rest)):
            text = c_int(first)
            for other in rest:
                text = f"{'least' if function == 'min' else 'most'}({text}, {c_int(other)})"
            return text
        case Call("i32", (operand,)):
            return c_int(operand, least)
        case Call("select", (condition, yes, no)):
            return f"({c_int(condition)} ? {c_int(yes)} : {c_int(no)})"
        case _:
            raise refuse("lowering", "index", str(type(expr).__name__), "sizes, constants and variables", step="lower")
