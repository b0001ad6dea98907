"""Set the elements of one vector access: ``s(vector=4) → s(vector=16)``."""

from __future__ import annotations

from cake_tui.ir.edits import Arguments, Edit, Ground
from cake_tui.model.schedule import Schedule


def rewrite(schedule: Schedule, arguments: Arguments, ground: Ground) -> Schedule:
    """``s(vector=old) → s(vector=vec_width)``; refused beyond the device's registers or without the knob."""
    return ground.set_knobs(schedule, {"vector": arguments["vec_width"]})


PLUGIN: Edit = Edit(rewrite, ("vec_width",))
