"""Two accesses to the same memory by different threads, one of them a write, have a barrier between them."""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir.laws._clashes import clashes_of, elements, line_of
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.model.diagnostic import Diagnostic

NAME = "unordered-access"


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield the later access of every pair that nothing orders."""
    for clash in clashes_of(subject, "race"):
        path = subject.sites[clash.site][0]
        yield subject.refuse(
            NAME,
            path,
            f"{elements(clash)} is touched, and nothing orders it against {line_of(subject, clash.other)}",
            f"a barrier that all their threads reach before line {subject.lines[path]}",
        )


PLUGIN: Law = Law(NAME, check)
