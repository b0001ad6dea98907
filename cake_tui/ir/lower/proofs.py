"""What is known where a statement stands: ranges of sizes and variables, and which conditions always hold."""

from __future__ import annotations

from cake_tui.ir.analysis.affine import Affine, Scope, quotient
from cake_tui.ir.analysis.forms import Unbounded, form_of
from cake_tui.ir.expr import OPPOSITE, Binary, Expr, Name, Number, Unary, names_in
from cake_tui.ir.program import Program

_UNKNOWN_HIGH = 1 << 30


class Proofs:
    """Bounds of every name in scope; grows downwards by `child`, never changes a parent.

    Parents and children share one scope: there, variables of other bounds have other names.
    """

    def __init__(self, scope: Scope, names: dict[str, Affine]) -> None:
        self.scope = scope
        self.names = names
        self._variables: dict[tuple[str, Affine, Affine], Affine] = {}  # by name and bounds
        # Answers found so far; a name that comes to mean something else takes its answers with it.
        self._forms: dict[Expr, Affine] = {}
        self._unbounded: frozenset[Expr] = frozenset()
        self._proofs: dict[Expr, bool] = {}
        self._asked: frozenset[str] = frozenset()  # names in what was asked
        self._known: tuple[Affine, ...] = ()  # forms that are at most 0 by a test in front of this place

    @classmethod
    def of(cls, program: Program) -> Proofs:
        """Start with a program's sizes and constants."""
        proofs = cls(Scope(), {})
        for size in program.sizes:
            if size.value is not None:
                proofs.names[size.name] = Affine.number(size.value)
                continue
            low, high = size.low or size.multiple, size.high or _UNKNOWN_HIGH
            count = f"{size.name}/{size.multiple}"
            form = proofs.scope.declare(
                count, Affine.number(-(-low // size.multiple)), Affine.number(high // size.multiple)
            )
            proofs.names[size.name] = form.times(size.multiple)
        for const in program.consts:
            proofs.put(const.name, const.value)
        return proofs

    def child(self) -> Proofs:
        """Return a copy to declare more in."""
        made = Proofs(self.scope, dict(self.names))
        made._variables = self._variables
        made._forms = dict(self._forms)
        made._proofs = dict(self._proofs)
        made._asked, made._unbounded = self._asked, self._unbounded
        made._known = self._known
        return made

    def _forget(self, name: str) -> None:
        if name in self._asked:
            self._unbounded = frozenset(expr for expr in self._unbounded if name not in names_in(expr))
            self._forms = {expr: form for expr, form in self._forms.items() if name not in names_in(expr)}
            self._proofs = {expr: proven for expr, proven in self._proofs.items() if name not in names_in(expr)}

    def put(self, name: str, value: Expr) -> None:
        """Let a name stand for an expression."""
        form = self._form(value)
        self._forget(name)
        if form is not None:
            self.names[name] = form
        else:
            self.names.pop(name, None)

    def declare(self, name: str, start: Expr, stop: Expr) -> None:
        """Let a variable run from start to stop - 1."""
        low, high = self._form(start), self._form(stop)
        self._forget(name)
        if low is None or high is None:
            self.names.pop(name, None)
            return
        variable = self._variables.get((name, low, high))
        if variable is None:
            fresh = name
            while fresh in self.scope.bounds:
                fresh += "'"
            variable = self._variables[name, low, high] = self.scope.declare(fresh, low, high - 1)
        self.names[name] = variable

    def knowing(self, condition: Expr) -> Proofs:
        """Return a child in which a comparison is known to hold."""
        child = self.child()
        fact = child._at_most_zero(condition)
        if fact is not None:
            child._known = (*self._known, fact)
            child._proofs = {asked: proven for asked, proven in child._proofs.items() if proven}
        return child

    def number(self, expr: Expr) -> int | None:
        """Return the value of an expression that is the same everywhere here, else None."""
        form = self._form(expr)
        if form is None or form.terms or type(form.constant) is not int:
            return None
        return form.constant

    def at_most(self, expr: Expr) -> int | None:
        """Return an upper bound of an expression, None where nothing bounds it."""
        form = self._form(expr)
        return None if form is None else int(self.scope.greatest(form))

    def at_least(self, expr: Expr, bound: int) -> bool:
        """Whether an expression is never below a number."""
        form = self._form(expr)
        return form is not None and self.scope.least(form) >= bound

    def multiple_of(self, expr: Expr, divisor: int) -> bool:
        """Whether an expression is surely a multiple of a number."""
        form = self._form(expr)
        return form is not None and form.divisor() % divisor == 0

    def surely(self, comparison: Expr) -> bool:
        """Whether one comparison always holds; cheaper than `holds` where its failing would change nothing."""
        return self._proven(comparison)

    def holds(self, condition: Expr) -> bool | None:
        """Whether a condition always holds (True), never does (False), or is not known."""
        match condition:
            case Unary("not", operand):
                inner = self.holds(operand)
                return None if inner is None else not inner
            case Binary("and" | "or" as op, left, right):
                deciding = op == "or"
                found = (self.holds(left), self.holds(right))
                if deciding in found:
                    return deciding
                return None if None in found else not deciding
            case Binary("==", left, right):
                return self._equal(left, right)
            case Binary("!=", left, right):
                equal = self._equal(left, right)
                return None if equal is None else not equal
            case Binary("<" | "<=" | ">" | ">=" as op, left, right):
                if self._proven(condition):
                    return True
                return False if self._proven(Binary(OPPOSITE[op], left, right)) else None
            case _:
                return None

    def _equal(self, left: Expr, right: Expr) -> bool | None:
        if self._proven(Binary("<=", left, right)) and self._proven(Binary(">=", left, right)):
            return True
        apart = self._proven(Binary("<", left, right)) or self._proven(Binary(">", left, right))
        return False if apart else None

    def _proven(self, condition: Expr) -> bool:
        if condition not in self._proofs:
            form = self._at_most_zero(condition)
            self._proofs[condition] = form is not None and (self._tested(form) or self.scope.at_most_zero(form))
        return self._proofs[condition]

    def _tested(self, form: Affine) -> bool:
        """Whether a test in front says it, or so many times it: ``i < n`` for ``16*i + 15 < 16*n``."""
        for fact in self._known:
            if fact.terms == form.terms and form.constant <= fact.constant:
                return True
            if not fact.terms or fact.names != form.names:
                continue
            factor = quotient(form.terms[0][1], fact.terms[0][1])
            scaled = fact.times(factor)
            if factor > 0 and scaled.terms == form.terms and form.constant <= scaled.constant:
                return True
        return False

    def _at_most_zero(self, condition: Expr) -> Affine | None:
        """Return the form that is at most 0 exactly where a comparison of whole numbers holds."""
        if not isinstance(condition, Binary) or condition.op not in ("<", "<=", ">", ">="):
            return None
        left, right = self._form(condition.left), self._form(condition.right)
        if left is None or right is None:
            return None
        less = left - right if condition.op in ("<", "<=") else right - left
        return less + 1 if condition.op in ("<", ">") else less

    def _form(self, expr: Expr) -> Affine | None:
        if type(expr) is Name:
            return self.names.get(expr.name)
        if type(expr) is Number and type(expr.value) is int:
            return Affine((), expr.value)
        found = self._forms.get(expr)
        if found is not None or expr in self._unbounded:
            return found
        names = names_in(expr)
        if not names <= self._asked:
            self._asked |= names
        try:
            return form_of(expr, self.names, self.scope, self._forms)
        except Unbounded:
            self._unbounded |= {expr}
            return None
