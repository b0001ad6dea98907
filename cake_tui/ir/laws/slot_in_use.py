"""A slot is free before it is refilled: every read of the old contents is over before an asynchronous write starts."""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir.laws._clashes import clashes_of, elements, line_of
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.model.diagnostic import Diagnostic

NAME = "slot-in-use"


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield the writes that may overtake an access to the slot's old contents."""
    for clash in clashes_of(subject, "refill"):
        path = subject.sites[clash.site][0]
        found = f"{elements(clash)} is written while {line_of(subject, clash.other)} may still use it"
        if clash.note == "unwaited":
            needed = f"a wait for that statement's group before line {subject.lines[path]}"
        else:
            needed = f"a barrier, or a wait for its arrive, between that use and line {subject.lines[path]}"
        yield subject.refuse(NAME, path, found, needed)


PLUGIN: Law = Law(NAME, check)
