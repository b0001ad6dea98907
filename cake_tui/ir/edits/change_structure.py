"""Go to another structure: ``tiled(block_k=64) → packed(block_k=64, …)``."""

from __future__ import annotations

from cake_tui.ir.edits import Arguments, Edit, Ground
from cake_tui.model.schedule import Schedule


def rewrite(schedule: Schedule, arguments: Arguments, ground: Ground) -> Schedule:
    """``s(knobs) → structure(knobs both have, defaults, further arguments)``; the same structure is refused."""
    changes = {name: value for name, value in arguments.items() if name != "structure"}
    return ground.change_structure(schedule, str(arguments["structure"]), changes)


PLUGIN: Edit = Edit(rewrite, ("structure",), open=True)
