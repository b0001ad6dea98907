"""Unroll the inner loop over k: ``s(unroll=1) → s(unroll=4)``."""

from __future__ import annotations

from cake_tui.ir.edits import Arguments, Edit, Ground
from cake_tui.model.schedule import Schedule


def rewrite(schedule: Schedule, arguments: Arguments, ground: Ground) -> Schedule:
    """``s(unroll=old) → s(unroll=factor)``; refused where the structure does not unroll."""
    return ground.set_knobs(schedule, {"unroll": arguments["factor"]})


PLUGIN: Edit = Edit(rewrite, ("factor",))
