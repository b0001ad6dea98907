"""Sums are taken in an order that the problem allows: ``ordered`` forbids split sums and atomics, ``blocked`` atomics.

A split sum is one whose parts go through global memory: another launch adds them up.
"""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir import program as ir
from cake_tui.ir.expr import refs_in
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.model.diagnostic import Diagnostic

NAME = "order-of-sums"


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield sums whose order the problem does not allow."""
    if subject.accumulation not in ("ordered", "blocked"):
        return
    written = {access.ref.buffer for access in subject.accesses if access.mode != "read"}
    for path, statement in subject.sites:
        match statement:
            case ir.Atomic(operator="add"):
                yield subject.refuse(
                    NAME, path, f"atomics under accumulation {subject.accumulation}", "sums in a fixed order"
                )
            case ir.Assign(op="+=", value=value) if subject.accumulation == "ordered":
                parts = [ref for ref in refs_in(value) if _global(subject, ref.buffer) and ref.buffer in written]
                if parts:
                    yield subject.refuse(
                        NAME, path, f"parts of a sum in {parts[0].buffer}, under accumulation ordered", "one sum"
                    )
            case ir.Reduce(operator="add", source=source) if subject.accumulation == "ordered":
                if _global(subject, source.buffer) and source.buffer in written:
                    yield subject.refuse(
                        NAME, path, f"parts of a sum in {source.buffer}, under accumulation ordered", "one sum"
                    )


def _global(subject: Subject, name: str) -> bool:
    return any(buffer.name == name and buffer.space == "workspace" for buffer in subject.program.buffers)


PLUGIN: Law = Law(NAME, check)
