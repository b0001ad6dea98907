"""The one parser of expressions: programs, kernel.toml and launch expressions all go through it."""

from __future__ import annotations

from collections.abc import Container
from functools import lru_cache

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
)
from cake_tui.ir.expr.tokens import Cursor, ParseError, tokens_of

_MOST_NODES = 250  # keeps every later walk far from Python's recursion limit
_DEEPEST = 50
_WORDS = frozenset(["and", "or", "not", "in", "inf", "where", "else"])


def parse(text: str, buffers: Container[str] = ()) -> Expr:
    """Parse one expression; bare names in `buffers` become whole references. Raises ParseError with the column."""
    if isinstance(buffers, tuple | frozenset):
        return _parsed(text, buffers)
    return _read(text, buffers)


@lru_cache(maxsize=1 << 11)
def _parsed(text: str, buffers: tuple[str, ...] | frozenset[str]) -> Expr:
    # Builders ask for the same few expressions with every candidate.
    return _read(text, buffers)


def _read(text: str, buffers: Container[str]) -> Expr:
    if "\n" in text or "\t" in text:
        text = text.replace("\n", " ").replace("\t", " ")
    cursor = Cursor(tokens_of(text), 1)
    expr = Reader(cursor, buffers).expression()
    if not cursor.ended:
        raise cursor.error("the end of the expression")
    return expr


class Reader:
    """Reads expressions and references at a cursor, by precedence climbing."""

    def __init__(self, cursor: Cursor, buffers: Container[str] = ()) -> None:
        self.cursor = cursor
        self.buffers = buffers
        self.nodes = 0
        self.depth = 0

    def expression(self, least: int = 1) -> Expr:
        """Read an expression whose operators bind at least as tightly as `least`."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.cursor.error(f"at most {_DEEPEST} levels of nesting")
        left = self._operand()
        while (level := PRECEDENCE.get(self._operator(), 0)) >= least:
            op = self.cursor.take().text
            right = self.expression(level + 1)
            left = self._count(Binary(op, left, right))
            if op in COMPARISONS and self.cursor.sees(*COMPARISONS):
                raise self.cursor.error("'and' between two comparisons")
        self.depth -= 1
        return left

    def reference(self) -> Ref:
        """Read ``name`` or ``name[indices]`` as a reference."""
        name = self.cursor.name("a buffer's name", _WORDS)
        return Ref(name, self._indices() if self.cursor.sees("[") else ())

    def _operator(self) -> str:
        token = self.cursor.now
        return token.text if token.kind in ("sign", "name") else ""

    def _operand(self) -> Expr:
        cursor = self.cursor
        if cursor.accept("("):
            inner = self.expression()
            cursor.expect(")")
            return inner
        if cursor.accept("-"):
            return self._count(Unary("-", self._deeper()))
        if cursor.accept("not"):
            return self._count(Unary("not", self.expression(PRECEDENCE["<"])))
        if cursor.now.kind == "number":
            return self._count(Number(_number(cursor)))
        if cursor.accept("inf"):
            return self._count(Number(float("inf")))
        name = cursor.name("a number, a name or '('", _WORDS)
        if cursor.sees("("):
            return self._call(name)
        if cursor.sees("["):
            return self._count(Ref(name, self._indices()))
        return self._count(Ref(name) if name in self.buffers else Name(name))

    def _deeper(self) -> Expr:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.cursor.error(f"at most {_DEEPEST} levels of nesting")
        operand = self._operand()
        self.depth -= 1
        return operand

    def _call(self, name: str) -> Expr:
        cursor = self.cursor
        if name not in FUNCTIONS:
            raise ParseError(
                cursor.line,
                cursor.tokens[cursor.at - 1].column,
                f"the function {name}",
                f"one of {', '.join(FUNCTIONS)}",
            )
        cursor.expect("(")
        arguments = [self.expression()]
        while cursor.accept(","):
            arguments.append(self.expression())
        least, most = FUNCTIONS[name]
        if len(arguments) < least or (most is not None and len(arguments) > most):
            wanted = str(least) if least == most else f"at least {least}"
            raise cursor.error(f"{wanted} argument{'s' if wanted != '1' else ''} for {name}, not {len(arguments)}")
        cursor.expect(")")
        return self._count(Call(name, tuple(arguments)))

    def _indices(self) -> tuple[Index, ...]:
        self.cursor.expect("[")
        found = [self._index()]
        while self.cursor.accept(","):
            found.append(self._index())
        self.cursor.expect("]")
        return tuple(found)

    def _index(self) -> Index:
        cursor = self.cursor
        if cursor.accept(":"):
            return All()
        axis = ""
        if cursor.now.kind == "name" and cursor.ahead(1) == "in":
            axis = cursor.name("the name of the element's coordinate", _WORDS)
            cursor.take()
        start = self.expression()
        if axis or cursor.sees("+:"):
            cursor.expect("+:")
            return Span(start, self.expression(), axis)
        return start

    def _count(self, node: Expr) -> Expr:
        self.nodes += 1
        if self.nodes > _MOST_NODES:
            raise self.cursor.error(f"at most {_MOST_NODES} operations in one expression")
        return node


def _number(cursor: Cursor) -> int | float:
    token = cursor.now
    if token.text.isdecimal():
        return int(cursor.take().text)
    value = float(token.text)
    if value == float("inf"):
        raise cursor.error("a number that a float64 can hold")
    cursor.take()
    return value
