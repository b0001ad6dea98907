"""Text of maps, contractions, reductions, picks and atomics: parsed and printed side by side."""

from __future__ import annotations

from cake_tui.ir.expr import Number, ParseError, Ref, show, show_ref
from cake_tui.ir.program import (
    SCOPES,
    Assign,
    Atomic,
    Contract,
    Convert,
    Pick,
    Reduce,
    Scope,
    Split,
    Statement,
)
from cake_tui.ir.text.line import Line, show_clause, show_completion, show_guard

_PRODUCTS = ("outer", "mma", "wgmma")
_SUMS = ("add", "mul", "max", "min")


def read_assign(line: Line) -> Assign | Contract:
    """Read ``target = value``, ``target += value`` or ``target += outer(x, y)``."""
    target = line.reference()
    op = line.expect("=", "+=")
    if line.sees(*_PRODUCTS) and line.ahead(1) == "(":
        if op == "=":
            raise line.error("a product only behind '+='")
        return _contract(line, target)
    value = line.expression()
    vector = line.expression() if line.accept("vector") else None
    return Assign(target, value, op, vector, line.guard())  # type: ignore[arg-type]


def _contract(line: Line, target: Ref) -> Contract:
    product = line.take().text
    line.expect("(")
    left = line.reference()
    line.expect(",")
    right = line.reference()
    line.expect(")")
    line.expect("math")
    math = line.dotted("the name of the arithmetic")
    column = line.now.column
    completes = line.completion()
    if (completes is None) == (product == "wgmma"):
        raise ParseError(
            line.line, column, "nothing" if completes is None else "'completes'", "'completes' on wgmma only"
        )
    return Contract(target, left, right, product, math, completes, line.guard())  # type: ignore[arg-type]


def read_split(line: Line) -> Split:
    """Read ``split x -> high, low``."""
    source = line.reference()
    line.expect("->")
    targets = [line.reference()]
    while line.accept(","):
        targets.append(line.reference())
    return Split(source, tuple(targets), line.guard())


def _within(line: Line) -> tuple[Scope, str, bool]:
    scope = line.one_of(SCOPES, "a scope") if line.accept("within") else "thread"
    scratch = line.new_name("the scratch buffer") if line.accept("through") else ""
    return scope, scratch, line.accept("carry") is not None  # type: ignore[return-value]


def _show_within(scope: str, scratch: str, carry: bool) -> str:
    text = "" if scope == "thread" else f" within {scope}"
    text += f" through {scratch}" if scratch else ""
    return f"{text} carry" if carry else text


def read_reduce(line: Line) -> Reduce:
    """Read ``reduce x over 1 with max -> m within warp``."""
    source = line.reference()
    line.expect("over")
    axis = line.integer("an axis")
    line.expect("with")
    operator = line.one_of(_SUMS, "an operator")
    line.expect("->")
    target = line.reference()
    return Reduce(source, axis, operator, target, *_within(line))  # type: ignore[arg-type]


def read_pick(line: Line, op: str) -> Pick:
    """Read ``argmin x over 1 from n0 -> value, index`` or ``topk 8 x over 1 -> values, indices``."""
    count = line.expression() if op == "topk" else Number(1)
    source = line.reference()
    line.expect("over")
    axis = line.integer("an axis")
    first = line.expression() if line.accept("from") else Number(0)
    line.expect("->")
    values = line.reference()
    line.expect(",")
    indices = line.reference()
    return Pick(op, source, axis, values, indices, count, first, *_within(line))  # type: ignore[arg-type]


def read_atomic(line: Line) -> Atomic:
    """Read ``atomic add y[…] with acc scope device``."""
    operator = line.one_of(("add", "max", "min"), "an operator")
    target = line.reference()
    line.expect("with")
    value = line.expression()
    scope = line.one_of(SCOPES, "a scope") if line.accept("scope") else "device"
    return Atomic(operator, target, value, scope, line.guard())  # type: ignore[arg-type]


def read_convert(line: Line) -> Convert:
    """Read ``convert x -> y``."""
    source = line.reference()
    line.expect("->")
    return Convert(source, line.reference())


def show_compute(statement: Statement) -> str | None:
    """Print a statement of this file; None for others."""
    match statement:
        case Assign(target, value, op, vector, where):
            return f"{show_ref(target)} {op} {show(value)}{show_clause('vector', vector)}{show_guard(where)}"
        case Contract(target, left, right, op, math, completes, where):
            clauses = f" math {math}{show_completion(completes)}{show_guard(where)}"
            return f"{show_ref(target)} += {op}({show_ref(left)}, {show_ref(right)}){clauses}"
        case Split(source, targets, where):
            return f"split {show_ref(source)} -> {', '.join(show_ref(part) for part in targets)}{show_guard(where)}"
        case Reduce(source, axis, operator, target, scope, scratch, carry):
            within = _show_within(scope, scratch, carry)
            return f"reduce {show_ref(source)} over {axis} with {operator} -> {show_ref(target)}{within}"
        case Pick(op, source, axis, values, indices, count, first, scope, scratch, carry):
            many = f" {show(count)}" if op == "topk" else ""
            start = "" if first == Number(0) else f" from {show(first)}"
            within = _show_within(scope, scratch, carry)
            return (
                f"{op}{many} {show_ref(source)} over {axis}{start} -> {show_ref(values)}, {show_ref(indices)}{within}"
            )
        case Atomic(operator, target, value, scope, where):
            scoped = "" if scope == "device" else f" scope {scope}"
            return f"atomic {operator} {show_ref(target)} with {show(value)}{scoped}{show_guard(where)}"
        case Convert(source, target):
            return f"convert {show_ref(source)} -> {show_ref(target)}"
        case _:
            return None
