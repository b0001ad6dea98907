"""Stage operands in shared memory, or stop doing so: ``s(shared=False) → s(shared=True)`` and back."""

from __future__ import annotations

from cake_tui.ir.edits import Arguments, Edit, Ground
from cake_tui.model.schedule import Schedule


def rewrite(schedule: Schedule, arguments: Arguments, ground: Ground) -> Schedule:
    """``s(shared=b) → s(shared=not b)``, ``naive → tiled(shared=True)``; on ``c`` shared buffers are packed panels."""
    known = ground.knobs(schedule.structure)
    if not known and "tiled" in ground.structures:
        return ground.change_structure(schedule, "tiled", {"shared": True})
    return ground.set_knobs(schedule, {"shared": not schedule.knob("shared")})


PLUGIN: Edit = Edit(rewrite)
