"""The bytes that a barrier expects in a phase are those of the bulk copies that complete on it."""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir import program as ir
from cake_tui.ir.laws._clashes import clashes_of, line_of
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.model.diagnostic import Diagnostic

NAME = "expected-bytes"


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield barriers whose announced and copied bytes differ."""
    for clash in clashes_of(subject, "bytes"):
        path = subject.sites[clash.site][0]
        statement = subject.statements[path]
        expects = isinstance(statement, ir.Expect)
        whose = "its copies bring" if expects else "this copy and others on it bring"
        besides = f"; see {line_of(subject, clash.other)}" if clash.other is not None else ""
        yield subject.refuse(
            NAME,
            path,
            f"{clash.buffer} expects {clash.asked} bytes in a phase, {whose} {clash.available}{besides}",
            f"expect {clash.buffer} … bytes {clash.available}",
            nearest=str(clash.available),
            limit=f"bytes:{clash.buffer}",
            asked=float(clash.asked),
            available=float(clash.available),
            unit="bytes",
        )


PLUGIN: Law = Law(NAME, check)
