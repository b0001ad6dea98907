"""Cut sums into parts: ``s(…) → split_k(split_k=parts, …)``, of rows ``→ split_rows(split_k=parts, …)``."""

from __future__ import annotations

from cake_tui.ir.edits import Arguments, Edit, Ground
from cake_tui.ir.refusal import refuse
from cake_tui.model.schedule import Schedule


def rewrite(schedule: Schedule, arguments: Arguments, ground: Ground) -> Schedule:
    """``s(knobs) → structure that splits(knobs both have, split_k=parts)``; refused where sums must stay in order."""
    if ground.problem.accumulation == "ordered":
        raise refuse("accumulation", "accumulation", "ordered", "blocked or any: split-k sums out of order")
    changes = {"split_k": arguments["parts"]}
    if "split_k" in ground.knobs(schedule.structure):
        return ground.set_knobs(schedule, changes)
    splitting = next((name for name in ground.structures if "split_k" in ground.knobs(name)), None)
    if splitting is None:
        raise refuse(
            "no-meaning", "structure", f"no structure that splits sums for {schedule.structure}", "one that sums"
        )
    return ground.change_structure(schedule, splitting, changes)


PLUGIN: Edit = Edit(rewrite, ("parts",))
