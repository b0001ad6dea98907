"""A constant with a list of legal values holds one of them."""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.model.diagnostic import Diagnostic

NAME = "legal-values"


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield constants outside of their lists, with the nearest value of it."""
    for const in subject.program.consts:
        value = subject.numbers[const.name]
        if const.values and value not in const.values:
            nearest = min(const.values, key=lambda legal: (abs(legal - value), legal))
            yield Diagnostic(
                NAME,
                const.name,
                f"{const.name} = {value}",
                f"one of {' '.join(str(legal) for legal in const.values)}",
                line=subject.declared_line(const.name),
                nearest=str(nearest),
            )


PLUGIN: Law = Law(NAME, check)
