"""Where a statement stands while it is lowered: what is visible, proven, replaced, and the lines so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Self

from cake_tui.ir.expr import Binary, Call, Expr, Name, Number, Unary, names_in, substitute
from cake_tui.ir.lower.indices import c_int, folded, simpler
from cake_tui.ir.lower.proofs import Proofs
from cake_tui.ir.lower.writer import Writer
from cake_tui.ir.program import Buffer, For, Program
from cake_tui.ir.refusal import refuse


class Frame:
    """State of one scope; `child` copies what an inner scope may change."""

    def __init__(self, program: Program, writer: Writer, taken: frozenset[str]) -> None:
        self.program = program
        self.writer = writer
        self.taken = taken  # every name of the program: what made-up names avoid
        self.proofs = Proofs.of(program)
        self.replaced: dict[str, Expr] = {}
        self.buffers: dict[str, Buffer] = {buffer.name: buffer for buffer in program.buffers}
        self.visible: set[str] = {size.name for size in program.sizes} | {const.name for const in program.consts}
        self.undecided: frozenset[Expr] = frozenset()
        self._simple: dict[Expr, Expr] = {}
        self._asked: frozenset[str] = frozenset()  # names in what was simplified

    def child(self) -> Self:
        """Return a frame for an inner scope that shares the writer."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        made.proofs = self.proofs.child()
        made.replaced = dict(self.replaced)
        made.buffers = dict(self.buffers)
        made.visible = set(self.visible)
        made._simple = dict(self._simple)
        return made

    def declare(self, name: str, start: Expr, stop: Expr) -> None:
        """Make a variable visible that runs from start to stop - 1."""
        self.proofs.declare(name, self.tidy(start), self.tidy(stop))
        self._forget(name)
        self.replaced.pop(name, None)
        self.visible.add(name)

    def replace(self, name: str, value: Expr) -> None:
        """Let a variable be an expression from here on: a loop of one turn."""
        value = self.tidy(value)
        self.proofs.put(name, value)
        self._forget(name)
        self.replaced[name] = value
        self.visible.add(name)

    def define(self, name: str, value: Expr) -> None:
        """Make a variable visible that the source sets to an expression."""
        self.proofs.put(name, self.tidy(value))
        self._forget(name)
        self.replaced.pop(name, None)
        self.visible.add(name)

    def knowing(self, conditions: Iterable[Expr]) -> Self:
        """Return a child in which conditions hold."""
        made = self.child()
        for condition in conditions:
            made.proofs = made.proofs.knowing(condition)
        made._simple = {}
        return made

    def doubting(self, conditions: Iterable[Expr]) -> Self:
        """Return a child that no longer asks whether the conditions hold."""
        made = self.child()
        made.undecided = self.undecided | frozenset(conditions)
        return made

    def tidy(self, expr: Expr) -> Expr:
        """Simplify an expression by what is proven here."""
        if type(expr) is Number:
            return expr
        if type(expr) is Name:
            return self.replaced.get(expr.name, expr)
        plain = folded(expr)
        if plain is not None and (not self.replaced or names_in(expr).isdisjoint(self.replaced)):
            return plain
        found = self._simple.get(expr)
        if found is None:
            found = self._simple[expr] = self._simplify(expr)
            names = names_in(expr)
            if not names <= self._asked:
                self._asked |= names
        return found

    def _simplify(self, expr: Expr) -> Expr:
        if type(expr) is Binary:
            left, right = self.tidy(expr.left), self.tidy(expr.right)
            same = left is expr.left and right is expr.right
            return simpler(expr if same else Binary(expr.op, left, right), self.proofs)
        if type(expr) is Call:
            inside = tuple([self.tidy(argument) for argument in expr.arguments])
            return simpler(Call(expr.function, inside), self.proofs)
        if type(expr) is Unary:
            return Unary(expr.op, self.tidy(expr.operand))
        return substitute(expr, self.replaced)

    def _forget(self, name: str) -> None:
        if name in self._asked:
            self._simple = {expr: simple for expr, simple in self._simple.items() if name not in names_in(expr)}

    def c(self, expr: Expr, least: int = 0) -> str:
        """Print a whole-number expression or condition as C, simplified."""
        return c_int(self.tidy(expr), least)

    def number(self, expr: Expr, what: str) -> int:
        """Return the value of an expression that the compiler must know; raises Ended(Rejected) otherwise."""
        value = self.proofs.number(self.tidy(expr))
        if value is None:
            raise refuse("lowering", what, c_int(expr), "a size that is constant in the source", step="lower")
        return value

    def unroll_of(self, loop: For) -> int:
        """Return how many turns of a loop become one; 1 where it says nothing. Raises as `number`."""
        return 1 if loop.unroll is None else self.number(loop.unroll, "unroll")

    def behind_last(self, loop: For) -> Expr:
        """Return one more than the last value of a loop's variable where numbers tell it, else the loop's stop."""
        start, stop, step = (self.proofs.number(self.tidy(expr)) for expr in (loop.start, loop.stop, loop.step))
        if start is None or stop is None or not step:
            return loop.stop
        return Number(start + (stop - start - 1) // step * step + 1)

    def fresh(self, *wanted: str) -> Iterator[str]:
        """Yield made-up names that no name of the program hides."""
        for name in wanted:
            while name in self.taken:
                name += "_"
            yield name


def chunk(variable: str, lanes: int, lanes_expr: Expr) -> Expr:
    """Return the first element of the vector that a loop variable counts."""
    return Name(variable) if lanes == 1 else Binary("*", Name(variable), lanes_expr)
