"""Affine forms over named variables with rational coefficients, and scopes that bound those variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd

Number = int | Fraction


def _plain(value: Number) -> Number:
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else value


@dataclass(frozen=True)
class Affine:
    """``sum(coefficient * name) + constant``; `terms` is sorted by name and holds no zero coefficient."""

    terms: tuple[tuple[str, Number], ...] = ()
    constant: Number = 0

    @classmethod
    def of(cls, terms: Mapping[str, Number], constant: Number = 0) -> Affine:
        """Normalise a mapping of coefficients."""
        kept = tuple(sorted((name, _plain(value)) for name, value in terms.items() if value))
        return cls(kept, _plain(constant))

    @classmethod
    def number(cls, value: Number) -> Affine:
        """A form without variables."""
        return cls((), _plain(value))

    @classmethod
    def variable(cls, name: str) -> Affine:
        """The form of one variable alone."""
        return cls(((name, 1),))

    @property
    def value(self) -> Number | None:
        """The number this form is, or None where a variable is left."""
        return None if self.terms else self.constant

    @property
    def names(self) -> tuple[str, ...]:
        """The variables in it, sorted."""
        return tuple(name for name, _ in self.terms)

    def coefficient(self, name: str) -> Number:
        """The factor of one variable, 0 where it is absent."""
        return next((value for key, value in self.terms if key == name), 0)

    def __add__(self, other: Affine | Number) -> Affine:
        if not isinstance(other, Affine):
            return Affine(self.terms, _plain(self.constant + other))
        if not other.terms:
            return Affine(self.terms, _plain(self.constant + other.constant))
        total = dict(self.terms)
        for name, value in other.terms:
            total[name] = total.get(name, 0) + value
        return Affine.of(total, self.constant + other.constant)

    def __neg__(self) -> Affine:
        return self.times(-1)

    def __sub__(self, other: Affine | Number) -> Affine:
        return self + (-other)

    def times(self, factor: Number) -> Affine:
        """Multiply by a number."""
        if not factor:
            return Affine()
        return Affine(
            tuple((name, _plain(value * factor)) for name, value in self.terms), _plain(self.constant * factor)
        )

    def put(self, name: str, form: Affine) -> Affine:
        """Put a form in the place of a variable."""
        factor = self.coefficient(name)
        if not factor:
            return self
        rest = Affine(tuple(item for item in self.terms if item[0] != name), self.constant)
        return rest + form.times(factor)

    def divisor(self) -> int:
        """The greatest integer that divides every coefficient and the constant; 0 for the form 0."""
        found = 0
        for value in (*(value for _, value in self.terms), self.constant):
            if isinstance(value, Fraction):
                return 1
            found = gcd(found, abs(value))
        return found

    def __str__(self) -> str:
        parts = []
        for name, value in self.terms:
            sign = "-" if value < 0 else "+"
            size = "" if abs(value) == 1 else f"{abs(value)}*"
            parts.append(f"{sign} {size}{name}")
        if self.constant or not parts:
            parts.append(f"{'-' if self.constant < 0 else '+'} {abs(self.constant)}")
        text = " ".join(parts)
        return text[2:] if text.startswith("+ ") else "-" + text[2:]


@dataclass(frozen=True)
class Bound:
    """A variable's inclusive bounds: it is at least every one of `lows` and at most every one of `highs`.

    The forms mention only variables declared before it. `whole` numbers only; `exact` means that every whole
    number between the greatest low and the least high is taken.
    """

    lows: tuple[Affine, ...]
    highs: tuple[Affine, ...]
    exact: bool = True


@dataclass
class Scope:
    """Variables in order of declaration, each bounded by forms over earlier ones, and facts known to be at most 0."""

    bounds: dict[str, Bound] = field(default_factory=dict)
    facts: tuple[Affine, ...] = ()

    def child(self) -> Scope:
        """A copy to declare more in."""
        return Scope(dict(self.bounds), self.facts)

    def declare(self, name: str, low: Affine, high: Affine, *, exact: bool = True) -> Affine:
        """Declare a variable between two forms, both included."""
        self.bounds[name] = Bound((low,), (high,), exact)
        return Affine.variable(name)

    def declare_between(
        self, name: str, lows: Iterable[Affine], highs: Iterable[Affine], *, exact: bool = False
    ) -> Affine:
        """Declare a variable that is at least all `lows` and at most all `highs`."""
        self.bounds[name] = Bound(tuple(lows), tuple(highs), exact)
        return Affine.variable(name)

    def know(self, *facts: Affine) -> Scope:
        """A copy in which each of `facts` is known to be at most 0."""
        return Scope(dict(self.bounds), (*self.facts, *facts))

    def at_most_zero(self, form: Affine) -> bool:
        """Whether ``form <= 0`` for all values in scope, shown by eliminating variables from the last to the first.

        Uses at most two facts, each scaled to cancel a variable: enough for guards of the kind ``index < size``.
        """
        if self._eliminate(form):
            return True
        for fact in self.facts:
            for once in self._without(form, fact):
                if self._eliminate(once):
                    return True
                for other in self.facts:
                    if other != fact and any(self._eliminate(twice) for twice in self._without(once, other)):
                        return True
        return False

    def _without(self, form: Affine, fact: Affine) -> list[Affine]:
        """The forms ``form - scale * fact``, scale > 0, that cancel one variable of `form`."""
        found = []
        for name, value in fact.terms:
            mine = form.coefficient(name)
            if mine and (mine > 0) == (value > 0):
                form_less = form - fact.times(Fraction(mine) / Fraction(value))
                if form_less not in found:
                    found.append(form_less)
        return found

    def _eliminate(self, form: Affine) -> bool:
        last = self._last(form)
        if last is None:
            return form.constant <= 0
        factor = form.coefficient(last)
        bound = self.bounds[last]
        return any(self._eliminate(form.put(last, end)) for end in (bound.highs if factor > 0 else bound.lows))

    def _last(self, form: Affine) -> str | None:
        if not form.terms:
            return None
        if len(form.terms) == 1:
            return form.terms[0][0]
        names = {name for name, _ in form.terms}
        return next(name for name in reversed(self.bounds) if name in names)

    def greatest(self, form: Affine) -> Number:
        """The least upper bound that elimination gives for `form`; facts are not used."""
        last = self._last(form)
        if last is None:
            return form.constant
        bound = self.bounds[last]
        ends = bound.highs if form.coefficient(last) > 0 else bound.lows
        return min(self.greatest(form.put(last, end)) for end in ends)

    def least(self, form: Affine) -> Number:
        """The greatest lower bound that elimination gives for `form`; facts are not used."""
        return _plain(-self.greatest(-form))
