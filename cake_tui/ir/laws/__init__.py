"""The verifier: a table of laws. `verify` asks each of them and returns every refusal, located in the text form."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from cake_tui import registry
from cake_tui.ir.laws._law import Law, LearnedLaw
from cake_tui.ir.laws._learned import check_learned
from cake_tui.ir.laws._opaque import check_opaque
from cake_tui.ir.laws._subject import Subject
from cake_tui.ir.opaque import Opaque
from cake_tui.ir.program import Program
from cake_tui.model.device import Device
from cake_tui.model.diagnostic import Diagnostic

PLACE = "ir/laws"


@cache
def table() -> tuple[Law, ...]:
    """Return every built-in law, those that make a program readable first."""
    laws = [registry.load(PLACE, name) for name in registry.names(PLACE)]
    return tuple(sorted(laws, key=lambda law: (law.stage, law.name)))


def verify(
    program: Program | Opaque,
    device: Device | None = None,
    *,
    accumulation: str = "any",
    learned: Iterable[LearnedLaw] = (),
) -> tuple[Diagnostic, ...]:
    """Return what the laws refuse in a program, in the order of its lines; nothing means that it may be lowered.

    A limit that the device does not state (0), or all of them without a device, is not checked. `accumulation` is the
    problem's: ``ordered`` refuses split sums and atomics, ``blocked`` atomics.
    """
    if isinstance(program, Opaque):
        return tuple(check_opaque(program, device))
    subject = Subject(program, device, accumulation)
    found: list[Diagnostic] = []
    stage = 0
    for law in table():
        if law.stage != stage and found:
            break
        stage = law.stage
        found += law.check(subject)
    else:
        found += check_learned(subject, learned)
    return tuple(sorted(dict.fromkeys(found), key=lambda diagnostic: diagnostic.line))


__all__ = ["Law", "LearnedLaw", "Subject", "table", "verify"]
