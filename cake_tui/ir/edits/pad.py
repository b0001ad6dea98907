"""Pad the rows of staged operands: ``s(pad=0) → s(pad=16)``."""

from __future__ import annotations

from cake_tui.ir.edits import Arguments, Edit, Ground
from cake_tui.model.schedule import Schedule


def rewrite(schedule: Schedule, arguments: Arguments, ground: Ground) -> Schedule:
    """``s(pad=old) → s(pad=pad)``, in elements: against bank conflicts, on ``c`` against cache-set aliasing."""
    return ground.set_knobs(schedule, {"pad": arguments["pad"]})


PLUGIN: Edit = Edit(rewrite, ("pad",))
