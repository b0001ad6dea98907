"""Set the block's shape: ``s(threads_x=4, threads_y=8) → s(threads_x=x, threads_y=y)``."""

from __future__ import annotations

from cake_tui.ir.edits import Arguments, Edit, Ground
from cake_tui.model.schedule import Schedule


def rewrite(schedule: Schedule, arguments: Arguments, ground: Ground) -> Schedule:
    """``s(threads_x, threads_y) → s(threads_x=x, threads_y=y)``; on ``c`` a task's block in micro-tiles."""
    return ground.set_sides(schedule, {"threads_x": arguments["x"], "threads_y": arguments["y"]})


PLUGIN: Edit = Edit(rewrite, ("x", "y"))
