"""No loop is unrolled eight times: that much code crowds the instruction cache."""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir.expr import Number
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.model.diagnostic import Diagnostic

NAME = "steady-unroll"
MOST = 4


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield the constant where it is above the limit."""
    for const in subject.program.consts:
        if const.name == "unroll" and isinstance(const.value, Number) and const.value.value > MOST:
            yield Diagnostic(
                NAME, const.name, f"unroll = {const.value.value}", f"at most {MOST}",
                line=subject.declared_line(const.name), nearest=str(MOST),
            )  # fmt: skip


PLUGIN: Law = Law(NAME, check)
