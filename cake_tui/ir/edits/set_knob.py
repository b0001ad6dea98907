"""Set one knob by name: ``packed(unroll=1) → packed(unroll=4)``."""

from __future__ import annotations

from cake_tui.ir.edits import Arguments, Edit, Ground
from cake_tui.model.schedule import Schedule


def rewrite(schedule: Schedule, arguments: Arguments, ground: Ground) -> Schedule:
    """``s(knob=old) → s(knob=value)``; refused where the structure has no such knob or the value is illegal."""
    return ground.set_knobs(schedule, {str(arguments["knob"]): arguments["value"]})


PLUGIN: Edit = Edit(rewrite, ("knob", "value"))
