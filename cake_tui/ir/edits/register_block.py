"""Compute an m x n block in registers: ``s(thread_m=4, thread_n=1) → s(thread_m=8, thread_n=2)``."""

from __future__ import annotations

from cake_tui.ir.edits import Arguments, Edit, Ground
from cake_tui.model.schedule import Schedule


def rewrite(schedule: Schedule, arguments: Arguments, ground: Ground) -> Schedule:
    """``s(thread_m, thread_n) → s(thread_m=m, thread_n=n)``; on ``c`` n counts vectors."""
    return ground.set_sides(schedule, {"thread_m": arguments["m"], "thread_n": arguments["n"]})


PLUGIN: Edit = Edit(rewrite, ("m", "n"))
