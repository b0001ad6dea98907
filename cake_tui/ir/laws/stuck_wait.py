"""Every wait ends: a barrier gets exactly the arrivals it counts in each phase, and all its threads reach it.

A wait tells a barrier's odd phases from the even ones and no more: two phases must not be over before it looks. What
counts into a phase comes behind the end of the one before.
"""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir import program as ir
from cake_tui.ir.laws._clashes import clashes_of, line_of
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.model.diagnostic import Diagnostic

NAME = "stuck-wait"


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield waits that never end and arrivals beyond what their barrier counts."""
    for clash in clashes_of(subject, "stuck", "arrivals"):
        path = subject.sites[clash.site][0]
        unit = "threads" if clash.note == "threads" else "arrivals"
        name = clash.buffer
        if clash.kind == "arrivals":
            found = f"{clash.asked} arrivals in one phase of {name}, which counts {clash.available}"
            needed = f"exactly {clash.available} arrivals a phase"
            asked, available = clash.asked, clash.available
        else:
            found = f"barrier {name} gets {clash.available} of {clash.asked} {unit}, so this never ends"
            needed = (
                f"{clash.asked} {unit} on {name}" if unit == "threads" else f"arrive {name} on that slot each round"
            )
            asked, available = clash.asked, clash.available
        statement = subject.statements[path]
        if isinstance(statement, ir.Wait) and unit == "arrivals" and clash.kind == "stuck":
            needed = f"{clash.asked} arrivals (arrive or expect) on {name} each time round"
        yield subject.refuse(
            NAME, path, found, needed, limit=f"{unit}:{name}", asked=float(asked), available=float(available), unit=unit
        )
    for clash in clashes_of(subject, "overrun"):
        path = subject.sites[clash.site][0]
        found = f"the next phase of {clash.buffer} may end too, by {line_of(subject, clash.other)}, before this looks"
        yield subject.refuse(NAME, path, found, "a wait by whoever ends that phase for what comes behind this one")
    for clash in clashes_of(subject, "early"):
        path = subject.sites[clash.site][0]
        found = f"nothing orders this behind the end of the phase of {clash.buffer} before"
        yield subject.refuse(
            NAME, path, found, f"a wait for that phase, or for what comes behind it, before line {subject.lines[path]}"
        )


PLUGIN: Law = Law(NAME, check)
