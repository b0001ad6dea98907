"""Double a number: ``s(knob=v) → s(knob=2·v)``."""

from __future__ import annotations

from cake_tui.ir.edits import Arguments, Edit, Ground
from cake_tui.ir.refusal import refuse
from cake_tui.model.schedule import Schedule


def rewrite(schedule: Schedule, arguments: Arguments, ground: Ground) -> Schedule:
    """``s(knob=v) → s(knob=2·v)``; refused where the structure lacks the knob or it is no number."""
    name = str(arguments["knob"])
    value = schedule.knob(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise refuse("no-meaning", name, f"{schedule.structure} has no number {name}", "a structure that has one")
    return ground.set_knobs(schedule, {name: 2 * value})


PLUGIN = Edit(rewrite, ("knob",))
