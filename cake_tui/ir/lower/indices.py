"""Whole-number expressions in C: simplified by what is proven, then printed."""

from __future__ import annotations

from functools import lru_cache

from cake_tui.ir.expr import PRECEDENCE, Binary, Call, Expr, Name, Number, Unary
from cake_tui.ir.lower.proofs import Proofs
from cake_tui.ir.refusal import refuse

_C_OPERATORS = {"and": "&&", "or": "||"}
_PROVABLE = ("min", "max", "ceil", "floor")  # calls that `simpler` may do without


@lru_cache(maxsize=1 << 14)
def folded(expr: Expr) -> Expr | None:
    """Return an expression simplified by the numbers in it alone; None where proofs about its names may say more."""
    if type(expr) is Binary:
        left, right = folded(expr.left), folded(expr.right)
        if left is None or right is None or expr.op == "%":
            return None
        same = left is expr.left and right is expr.right
        return _simpler_binary(expr if same else Binary(expr.op, left, right))
    if type(expr) is Call:
        inside = tuple([folded(argument) for argument in expr.arguments])
        return None if None in inside or expr.function in _PROVABLE else Call(expr.function, inside)  # type: ignore[arg-type]
    if type(expr) is Unary:
        operand = folded(expr.operand)
        return None if operand is None else Unary(expr.op, operand)
    return expr


def simpler(node: Expr, proofs: Proofs) -> Expr:
    """Return an equal expression without what is proven needless at its top: ``0*x``, ``min(x, y)`` where x <= y.

    What is inside must have been simplified before.
    """
    if type(node) is Binary:
        if node.op == "%" and proofs.surely(Binary("<", node.left, node.right)) and proofs.at_least(node.left, 0):
            return node.left
        return _simpler_binary(node)
    if type(node) is Call:
        if node.function in ("min", "max"):
            return _extreme(node.function, node.arguments, proofs)
        if node.function in ("ceil", "floor"):
            return _rounded(node, proofs)
    return node


def _simpler_binary(node: Binary) -> Expr:
    op, left, right = node.op, node.left, node.right
    first = left.value if type(left) is Number else None
    second = right.value if type(right) is Number else None
    if isinstance(first, int) and isinstance(second, int) and op in ("+", "-", "*"):
        folded = first + second if op == "+" else first - second if op == "-" else first * second
        return Number(folded) if folded >= 0 else node
    if op == "*":
        if first == 0 or second == 0:
            return Number(0)
        return right if first == 1 else left if second == 1 else node
    if op == "+" and first == 0:
        return right
    if (op in ("+", "-") and second == 0) or (op == "/" and second == 1):
        return left
    return Number(0) if op == "-" and left == right else node


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


def _rounded(node: Call, proofs: Proofs) -> Expr:
    (inner,) = node.arguments
    if not isinstance(inner, Binary):
        return inner
    if inner.op != "/":
        return node
    top, bottom = proofs.number(inner.left), proofs.number(inner.right)
    if top is None or not bottom:
        return node
    if top % bottom == 0:
        return Number(1) if top == bottom else inner
    return Number(1) if node.function == "ceil" and top < bottom else node


def c_int(expr: Expr, least: int = 0) -> str:
    """Print a whole-number expression or a condition."""
    if type(expr) is Name:
        return expr.name
    if type(expr) is Number:
        return str(expr.value)
    if type(expr) is Binary:
        op, right = expr.op, expr.right
        level = PRECEDENCE[op]
        # Sums of sums and products of products need no parentheses on the right; a quotient there does.
        same = op == "+" or (op == "*" and type(right) is Binary and right.op == "*")
        text = f"{c_int(expr.left, level)} {_C_OPERATORS.get(op, op)} {c_int(right, level if same else level + 1)}"
        return f"({text})" if level < least else text
    match expr:
        case Unary("-", operand):
            return f"-{c_int(operand, 9)}"
        case Unary(_, operand):
            return f"!({c_int(operand)})"
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
