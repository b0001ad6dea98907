"""Expression trees: numbers, names, references into buffers and a closed list of functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import msgspec


class Number(msgspec.Struct, frozen=True, gc=False):
    """A constant; whole numbers stay `int`."""

    value: int | float


class Name(msgspec.Struct, frozen=True, gc=False):
    """A size, a constant, a grid axis, a loop variable or the element of a named span."""

    name: str


class Unary(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """``-x`` or ``not x``."""

    op: str
    operand: Expr


class Binary(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """Arithmetic, comparison or logic. ``/`` of whole numbers is exact; round it with ceil or floor."""

    op: str
    left: Expr
    right: Expr


class Call(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """A function of the closed list `FUNCTIONS`."""

    function: str
    arguments: tuple[Expr, ...]


class Span(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """``start +: length``, or ``n in start +: length`` which names the element's coordinate for `where` and maps."""

    start: Expr
    length: Expr
    axis: str = ""


class All(msgspec.Struct, frozen=True, gc=False):
    """``:``, the whole axis."""


class Ref(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """An element or a tile of a buffer; axes behind the last index are whole, so no index means all of it."""

    buffer: str
    indices: tuple[Index, ...] = ()


Expr = Number | Name | Unary | Binary | Call | Ref
Index = Expr | Span | All

# name -> (least, most) number of arguments; most None means any.
FUNCTIONS: Mapping[str, tuple[int, int | None]] = {
    "relu": (1, 1), "gelu_erf": (1, 1), "gelu_tanh": (1, 1), "silu": (1, 1), "sigmoid": (1, 1),
    "exp": (1, 1), "log": (1, 1), "sqrt": (1, 1), "rsqrt": (1, 1), "tanh": (1, 1), "erf": (1, 1),
    "sin": (1, 1), "cos": (1, 1), "abs": (1, 1), "floor": (1, 1), "ceil": (1, 1), "square": (1, 1),
    "min": (2, None), "max": (2, None), "pow": (2, 2), "select": (3, 3),
    "f64": (1, 1), "f32": (1, 1), "f16": (1, 1), "bf16": (1, 1), "tf32": (1, 1), "i32": (1, 1), "u8": (1, 1),
}  # fmt: skip

COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_LEVELS: tuple[tuple[str, ...], ...] = (("or",), ("and",), COMPARISONS, ("+", "-"), ("*", "/", "%"))
OPPOSITE: Mapping[str, str] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
PRECEDENCE: Mapping[str, int] = {op: level for level, ops in enumerate(_LEVELS, start=1) for op in ops}


def parts(expr: Expr | Index) -> tuple[Expr, ...]:
    """Return the expressions directly inside `expr`, those of spans included."""
    # By exact type: asking a struct whether it is an instance of another class is slow, and this is asked most.
    if type(expr) is Number or type(expr) is Name:
        return ()
    if type(expr) is Binary:
        return (expr.left, expr.right)
    if type(expr) is Ref:
        inside: list[Expr] = []
        for index in expr.indices:
            if type(index) is Span:
                inside += (index.start, index.length)
            elif type(index) is not All:
                inside.append(index)  # type: ignore[arg-type]
        return tuple(inside)
    if type(expr) is Call:
        return expr.arguments
    if type(expr) is Span:
        return (expr.start, expr.length)
    return (expr.operand,) if type(expr) is Unary else ()


def walk(expr: Expr | Index) -> list[Expr | Index]:
    """Return `expr` and everything inside it, outermost first."""
    found: list[Expr | Index] = []
    left: list[Expr | Index] = [expr]
    while left:
        node = left.pop()
        found.append(node)
        left += parts(node)[::-1]
    return found


@lru_cache(maxsize=1 << 14)
def names_in(expr: Expr | Index) -> frozenset[str]:
    """Return every name that `expr` uses; buffers are not names."""
    return frozenset(node.name for node in walk(expr) if type(node) is Name)


@lru_cache(maxsize=1 << 14)
def refs_in(expr: Expr | Index) -> tuple[Ref, ...]:
    """Return every reference into a buffer, outermost first."""
    found: list[Ref] = []
    left: list[Expr | Index] = [expr]
    while left:
        node = left.pop()
        if type(node) is Ref:
            found.append(node)
        left += [part for part in parts(node)[::-1] if type(part) is not Number and type(part) is not Name]
    return tuple(found)


def conjuncts(condition: Expr | None) -> tuple[Expr, ...]:
    """Split a condition at its outermost ``and``s; None asks nothing."""
    if condition is None:
        return ()
    if type(condition) is Binary and condition.op == "and":
        return conjuncts(condition.left) + conjuncts(condition.right)
    return (condition,)


def rewrite(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """Return `expr` with every node replaced for which `change` gives another, innermost first."""
    new = expr
    if type(expr) is Binary:
        left, right = rewrite(expr.left, change), rewrite(expr.right, change)
        if left is not expr.left or right is not expr.right:
            new = Binary(expr.op, left, right)
    elif type(expr) is Unary:
        new = Unary(expr.op, rewrite(expr.operand, change))
    elif type(expr) is Call:
        new = Call(expr.function, tuple(rewrite(argument, change) for argument in expr.arguments))
    elif type(expr) is Ref and expr.indices:
        new = Ref(expr.buffer, tuple(_rewrite_index(index, change) for index in expr.indices))
    changed = change(new)
    return new if changed is None else changed


def _rewrite_index(index: Index, change: Callable[[Expr], Expr | None]) -> Index:
    if type(index) is Span:
        return Span(rewrite(index.start, change), rewrite(index.length, change), index.axis)
    return index if isinstance(index, All | Span) else rewrite(index, change)


def substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Return `expr` with names replaced by expressions."""
    return rewrite(expr, lambda node: values.get(node.name) if isinstance(node, Name) else None)
