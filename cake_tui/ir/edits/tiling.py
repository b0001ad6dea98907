"""Work on a block of k at a time: ``naive() → tiled(block_k=t)``, ``s(block_k=old) → s(block_k=t)``."""

from __future__ import annotations

from cake_tui.ir.edits import Arguments, Edit, Ground
from cake_tui.model.schedule import Schedule


def rewrite(schedule: Schedule, arguments: Arguments, ground: Ground) -> Schedule:
    """``naive → tiled(block_k=tile_size)``; elsewhere ``block_k=old → block_k=tile_size``."""
    changes = {"block_k": arguments["tile_size"]}
    if "block_k" not in ground.knobs(schedule.structure) and "tiled" in ground.structures:
        return ground.change_structure(schedule, "tiled", changes)
    return ground.set_knobs(schedule, changes)


PLUGIN: Edit = Edit(rewrite, ("tile_size",))
