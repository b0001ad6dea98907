"""Lowering: a program becomes source text, compile options and launch plans; a folder a target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

from cake_tui import registry
from cake_tui.ir import text
from cake_tui.ir.opaque import Opaque
from cake_tui.ir.program import Program
from cake_tui.ir.refusal import refuse
from cake_tui.model.device import Target
from cake_tui.model.lowered import Lowered
from cake_tui.model.problem import Shape

PLACE = "ir/lower"


class Lowering(Protocol):
    """What a target's folder offers."""

    def __call__(self, program: Program | Opaque, arch: str, shapes: Sequence[Shape]) -> Lowered:
        """Make source, options and one plan a shape."""
        ...


def lower(program: Program | Opaque, target: Target, arch: str, shapes: Sequence[Shape]) -> Lowered:
    """Lower a program that the laws passed; one plan a shape, several only with run-time sizes.

    Raises Ended(Rejected) for a statement that the target's lowering lacks.
    """
    if target not in registry.names(PLACE) or program.target != target:
        found = f"a program for {program.target}"
        raise refuse("target", "target", found, f"one for {' or '.join(registry.names(PLACE))}", step="lower")
    return cast(Lowering, registry.load(PLACE, target))(program, arch, shapes)


def text_of(program: Program | Opaque) -> str:
    """Return the program's canonical text; an opaque one has none and gives an empty string."""
    return text.render(program) if isinstance(program, Program) else ""
