"""Refusals: how builders and edits say no, as data with the field that forbids it and the nearest legal value."""

from __future__ import annotations

from collections.abc import Sequence

from cake_tui.errors import Ended
from cake_tui.model.diagnostic import Diagnostic
from cake_tui.model.outcome import Rejected
from cake_tui.model.schedule import KnobValue


def refuse(law: str, field: str, found: str, needed: str, *, nearest: str | None = None, step: str = "edits") -> Ended:
    """Make the ending of a schedule that `field` forbids; the caller raises it."""
    return refuse_with(Diagnostic(law=law, field=field, found=found, needed=needed, nearest=nearest), step)


def refuse_limit(diagnostic: Diagnostic) -> Ended:
    """Make the ending of a schedule that breaks a limit, with its figures."""
    return refuse_with(diagnostic, "build")


def refuse_with(diagnostic: Diagnostic, step: str) -> Ended:
    """Wrap one diagnostic as a candidate's ending."""
    return Ended(Rejected(step=step, reason=diagnostic.text, diagnostics=(diagnostic,)))


def nearest_value(asked: KnobValue, values: Sequence[KnobValue]) -> KnobValue:
    """Return the legal value nearest to `asked`: by distance for numbers, else the first."""
    numbers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    if isinstance(asked, int) and not isinstance(asked, bool) and numbers:
        return min(numbers, key=lambda value: (abs(value - asked), value))
    return values[0]
