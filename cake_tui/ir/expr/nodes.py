"""Expression trees: numbers, names, references into buffers and a closed list of functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

import msgspec


class Number(msgspec.Struct, frozen=True):
    """A constant; whole numbers stay `int`."""

    value: int | float


class Name(msgspec.Struct, frozen=True):
    """A size, a constant, a grid axis, a loop variable or the element of a named span."""

    name: str


class Unary(msgspec.Struct, frozen=True):
    """``-x`` or ``not x``."""

    op: str
    operand: Expr


class Binary(msgspec.Struct, frozen=True):
    """Arithmetic, comparison or logic. ``/`` of whole numbers is exact; round it with ceil or floor."""

    op: str
    left: Expr
    right: Expr


class Call(msgspec.Struct, frozen=True):
    """A function of the closed list `FUNCTIONS`."""

    function: str
    arguments: tuple[Expr, ...]


class Span(msgspec.Struct, frozen=True):
    """``start +: length``, or ``n in start +: length`` which names the element's coordinate for `where` and maps."""

    start: Expr
    length: Expr
    axis: str = ""


class All(msgspec.Struct, frozen=True):
    """``:``, the whole axis."""


class Ref(msgspec.Struct, frozen=True):
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
PRECEDENCE: Mapping[str, int] = {op: level for level, ops in enumerate(_LEVELS, start=1) for op in ops}


def number(value: int | float) -> Number:
    """Wrap a Python number."""
    return Number(value)


def parts(expr: Expr | Index) -> tuple[Expr, ...]:
    """Return the expressions directly inside `expr`, those of spans included."""
    match expr:
        case Unary(operand=operand):
            return (operand,)
        case Binary(left=left, right=right):
            return (left, right)
        case Call(arguments=arguments):
            return arguments
        case Span(start=start, length=length):
            return (start, length)
        case Ref(indices=indices):
            inside: list[Expr] = []
            for index in indices:
                if isinstance(index, Span):
                    inside += (index.start, index.length)
                elif not isinstance(index, All):
                    inside.append(index)
            return tuple(inside)
        case _:
            return ()


def walk(expr: Expr | Index) -> Iterator[Expr | Index]:
    """Yield `expr` and everything inside it, outermost first."""
    yield expr
    for part in parts(expr):
        yield from walk(part)


@lru_cache(maxsize=1 << 14)
def names_in(expr: Expr | Index) -> frozenset[str]:
    """Return every name that `expr` uses; buffers are not names."""
    return frozenset(node.name for node in walk(expr) if isinstance(node, Name))


def refs_in(expr: Expr | Index) -> tuple[Ref, ...]:
    """Return every reference into a buffer, outermost first."""
    return tuple(node for node in walk(expr) if isinstance(node, Ref))


def rewrite(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """Return `expr` with every node replaced for which `change` gives another, innermost first."""

    def index(old: Index) -> Index:
        if isinstance(old, Span):
            return Span(rewrite(old.start, change), rewrite(old.length, change), old.axis)
        return old if isinstance(old, All) else rewrite(old, change)

    match expr:
        case Unary(op, operand):
            new: Expr = Unary(op, rewrite(operand, change))
        case Binary(op, left, right):
            new = Binary(op, rewrite(left, change), rewrite(right, change))
        case Call(function, arguments):
            new = Call(function, tuple(rewrite(argument, change) for argument in arguments))
        case Ref(buffer, indices):
            new = Ref(buffer, tuple(index(old) for old in indices))
        case _:
            new = expr
    changed = change(new)
    return new if changed is None else changed


def substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Return `expr` with names replaced by expressions."""
    return rewrite(expr, lambda node: values.get(node.name) if isinstance(node, Name) else None)
