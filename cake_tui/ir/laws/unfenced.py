"""A fence stands between writes by ordinary instructions and the asynchronous unit that reads them.

TMA and wgmma reach shared memory through another proxy, and wgmma reads its registers as it finds them.
"""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir.laws._clashes import clashes_of, elements, line_of
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.model.diagnostic import Diagnostic

NAME = "unfenced"


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield asynchronous reads of what was written without a fence in between."""
    for clash in clashes_of(subject, "unfenced"):
        path = subject.sites[clash.site][0]
        fence = "fence wgmma" if clash.note == "mma" else "fence async_proxy by the writer, before the barrier,"
        yield subject.refuse(
            NAME,
            path,
            f"{elements(clash)} was written by {line_of(subject, clash.other)} with no fence since",
            f"{fence} before line {subject.lines[path]}",
        )


PLUGIN: Law = Law(NAME, check)
