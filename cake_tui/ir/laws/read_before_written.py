"""Shared memory and registers are written before they are read: they start with whatever was there."""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir.laws._clashes import clashes_of, elements
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.model.diagnostic import Diagnostic

NAME = "read-before-written"


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield reads of elements that no statement has written by then."""
    for clash in clashes_of(subject, "unwritten"):
        path = subject.sites[clash.site][0]
        yield subject.refuse(
            NAME,
            path,
            f"{elements(clash)} is read, but nothing has written it by then",
            f"a write of those elements before line {subject.lines[path]}, or an initial value",
        )


PLUGIN: Law = Law(NAME, check)
