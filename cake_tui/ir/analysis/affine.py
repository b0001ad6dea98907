"""Affine forms over named variables with rational coefficients, and scopes that bound those variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd

import msgspec

Number = int | Fraction


def _plain(value: Number) -> Number:
    return value if type(value) is int or value.denominator != 1 else value.numerator


class Affine(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """``sum(coefficient * name) + constant``; `terms` is sorted by name and holds no zero coefficient."""

    terms: tuple[tuple[str, Number], ...] = ()
    constant: Number = 0

    @classmethod
    def of(cls, terms: Mapping[str, Number], constant: Number = 0) -> Affine:
        """Normalise a mapping of coefficients."""
        kept = tuple(sorted([(name, _plain(value)) for name, value in terms.items() if value]))
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
        return self.plus(other) if type(other) is Affine else Affine(self.terms, _plain(self.constant + other))  # type: ignore[operator]

    def __neg__(self) -> Affine:
        return self.times(-1)

    def __sub__(self, other: Affine | Number) -> Affine:
        return self.plus(other, -1) if type(other) is Affine else Affine(self.terms, _plain(self.constant - other))  # type: ignore[operator]

    def plus(self, other: Affine, factor: Number = 1) -> Affine:
        """Add another form so many times."""
        constant = _plain(self.constant + other.constant * factor)
        if not other.terms:
            return Affine(self.terms, constant)
        total = dict(self.terms)
        for name, value in other.terms:
            total[name] = total.get(name, 0) + value * factor
        return Affine.of(total, constant)

    def times(self, factor: Number) -> Affine:
        """Multiply by a number."""
        if factor == 1:
            return self
        if not factor:
            return ZERO
        return Affine(
            tuple([(name, _plain(value * factor)) for name, value in self.terms]), _plain(self.constant * factor)
        )

    def over(self, divisor: Number) -> Affine:
        """Divide by a number other than 0, exactly."""
        if divisor == 1:
            return self
        return Affine(
            tuple([(name, quotient(value, divisor)) for name, value in self.terms]), quotient(self.constant, divisor)
        )

    def put(self, name: str, form: Affine) -> Affine:
        """Put a form in the place of a variable."""
        factor = self.coefficient(name)
        if not factor:
            return self
        return Affine(tuple([item for item in self.terms if item[0] != name]), self.constant).plus(form, factor)

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


ZERO, ONE = Affine(), Affine((), 1)


def quotient(value: Number, divisor: Number) -> Number:
    """Divide exactly; the divisor is not 0."""
    if type(value) is int and type(divisor) is int and value % divisor == 0:
        return value // divisor
    return _plain(Fraction(value) / divisor)


class Bound(msgspec.Struct, frozen=True, gc=False):
    """A variable's inclusive bounds: it is at least every one of `lows` and at most every one of `highs`.

    The forms mention only variables declared before it; `at` counts declarations. Whole numbers only; `exact` means
    that every whole number between the greatest low and the least high is taken.
    """

    lows: tuple[Affine, ...]
    highs: tuple[Affine, ...]
    exact: bool
    at: int


@dataclass
class Scope:
    """Variables in order of declaration, each bounded by forms over earlier ones, and facts known to be at most 0."""

    bounds: dict[str, Bound] = field(default_factory=dict)
    facts: tuple[Affine, ...] = ()
    _most: dict[Affine, Number] = field(default_factory=dict)  # upper bounds found so far, of forms in scope

    def child(self) -> Scope:
        """A copy to declare more in."""
        return Scope(dict(self.bounds), self.facts)

    def declare(self, name: str, low: Affine, high: Affine, *, exact: bool = True) -> Affine:
        """Declare a variable between two forms, both included."""
        return self.declare_between(name, (low,), (high,), exact=exact)

    def declare_between(
        self, name: str, lows: Iterable[Affine], highs: Iterable[Affine], *, exact: bool = False
    ) -> Affine:
        """Declare a variable that is at least all `lows` and at most all `highs`."""
        known = self.bounds.get(name)
        if known is not None:
            self._most.clear()
        at = len(self.bounds) if known is None else known.at
        self.bounds[name] = Bound(tuple(lows), tuple(highs), exact, at)
        return Affine.variable(name)

    def know(self, *facts: Affine) -> Scope:
        """A copy in which each of `facts` is known to be at most 0."""
        return Scope(dict(self.bounds), (*self.facts, *facts))

    def at_most_zero(self, form: Affine) -> bool:
        """Whether ``form <= 0`` for all values in scope, shown by eliminating variables from the last to the first.

        Uses at most two facts, each scaled to cancel a variable: enough for guards of the kind ``index < size``.
        """
        if self.greatest(form) <= 0:
            return True
        for fact in self.facts:
            for once in self._without(form, fact):
                if self.greatest(once) <= 0:
                    return True
                for other in self.facts:
                    if other != fact and any(self.greatest(twice) <= 0 for twice in self._without(once, other)):
                        return True
        return False

    def _without(self, form: Affine, fact: Affine) -> list[Affine]:
        """The forms ``form - scale * fact``, scale > 0, that cancel one variable of `form`."""
        found = []
        for name, value in fact.terms:
            mine = form.coefficient(name)
            if mine and (mine > 0) == (value > 0):
                form_less = form.plus(fact, -quotient(mine, value))
                if form_less not in found:
                    found.append(form_less)
        return found

    def greatest(self, form: Affine) -> Number:
        """The least upper bound that elimination gives for `form`; facts are not used."""
        if not form.terms:
            return form.constant
        found = self._most.get(form)
        if found is None:
            found = self._most[form] = self._greatest(dict(form.terms), form.constant)
        return found

    def least(self, form: Affine) -> Number:
        """The greatest lower bound that elimination gives for `form`; facts are not used."""
        return _plain(-self.greatest(-form))

    def _greatest(self, terms: dict[str, Number], constant: Number) -> Number:
        """Put bounds in the place of variables, the last declared first, until a number is left; uses `terms` up."""
        bounds = self.bounds
        while terms:
            last = next(iter(terms)) if len(terms) == 1 else max(terms, key=lambda name: bounds[name].at)
            factor = terms.pop(last)
            bound = bounds[last]
            ends = bound.highs if factor > 0 else bound.lows
            if len(ends) > 1:
                return min(self._greatest(*_put(dict(terms), constant, end, factor)) for end in ends)
            terms, constant = _put(terms, constant, ends[0], factor)
        return _plain(constant)


def _put(terms: dict[str, Number], constant: Number, end: Affine, factor: Number) -> tuple[dict[str, Number], Number]:
    """Add a bound so many times to terms, in place, and to their constant."""
    for name, value in end.terms:
        total = terms.get(name, 0) + value * factor
        if total:
            terms[name] = total
        else:
            terms.pop(name, None)
    return terms, constant + end.constant * factor
