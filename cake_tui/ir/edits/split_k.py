"""Cut the sum over k into parts: ``s(…) → split_k(split_k=parts, …)``."""

from __future__ import annotations

from cake_tui.ir.edits import Arguments, Edit, Ground
from cake_tui.ir.refusal import refuse
from cake_tui.model.schedule import Schedule


def rewrite(schedule: Schedule, arguments: Arguments, ground: Ground) -> Schedule:
    """``s(knobs) → split_k(knobs both have, split_k=parts)``; refused where sums must stay in order."""
    if ground.problem.accumulation == "ordered":
        raise refuse("accumulation", "accumulation", "ordered", "blocked or any: split-k sums out of order")
    changes = {"split_k": arguments["parts"]}
    if "split_k" in ground.knobs(schedule.structure):
        return ground.set_knobs(schedule, changes)
    if "split_k" not in ground.structures:
        raise refuse(
            "no-meaning", "structure", f"no split-k structure for {schedule.structure}", "one that sums over k"
        )
    return ground.change_structure(schedule, "split_k", changes)


PLUGIN: Edit = Edit(rewrite, ("parts",))
