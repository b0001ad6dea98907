"""What an asynchronous statement writes is read only after a wait that covers it, by threads that the wait reaches."""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir import program as ir
from cake_tui.ir.expr import Number
from cake_tui.ir.laws._clashes import clashes_of, elements, line_of
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.ir.text.program import show_statement
from cake_tui.ir.walk import Path
from cake_tui.model.diagnostic import Diagnostic

NAME = "unwaited-copy"


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield the accesses that no wait orders behind the asynchronous statement."""
    for clash in clashes_of(subject, "unwaited", "unfinished"):
        path = subject.sites[clash.site][0]
        if clash.kind == "unfinished":
            yield subject.refuse(
                NAME,
                path,
                f"nothing waits for what is written to {elements(clash)} before the launch ends",
                f"{_completion(subject, path)} before the end",
            )
            continue
        assert clash.other is not None  # pairs have two sides
        other = subject.sites[clash.other][0]
        wait = _completion(subject, other)
        also = "commit its group, then " if clash.note == "uncommitted" else ""
        what = f"{elements(clash)} is used, but nothing orders that behind {line_of(subject, clash.other)}"
        many = subject.role_of(path) is None or subject.role_of(path) != subject.role_of(other)
        barrier = " and a barrier" if wait.startswith("wait group") and many else ""
        yield subject.refuse(NAME, path, what, f"{also}{wait}{barrier} before line {subject.lines[path]}")


def _completion(subject: Subject, path: Path) -> str:
    """The wait that completes an asynchronous statement."""
    completes = getattr(subject.statements[path], "completes", None)
    if completes is None:
        return "a wait"
    if completes.kind == "group":
        return f"wait group {completes.name}"
    return show_statement(ir.Wait(completes.name, completes.slot or Number(0)))


PLUGIN: Law = Law(NAME, check)
