"""Toggle the staging of operands in shared memory: ``s(shared=False) → s(shared=True)`` and back."""

from __future__ import annotations

from cake_tui.ir.edits import Arguments, Edit, Ground
from cake_tui.model.schedule import Schedule


def rewrite(schedule: Schedule, arguments: Arguments, ground: Ground) -> Schedule:
    """``s(shared=b) → s(shared=not b)``; on ``c`` shared buffers are packed panels of one task."""
    return ground.set_knobs(schedule, {"shared": not schedule.knob("shared")})


PLUGIN: Edit = Edit(rewrite)
