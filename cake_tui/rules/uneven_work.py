"""Uneven work: some threads are done while others still work.

*Signal*: the pool measured its slowest thread more than a tenth above the mean, or the tasks do not divide evenly
among the cores.

*Why it matters*: the kernel is as slow as its slowest thread; four tasks on three cores leave a third of the machine
idle.

*Try*: more and smaller tasks (a smaller block, split-k), or a count of tasks that the cores divide.
"""

from __future__ import annotations

import math

from cake_tui.model.finding import Finding
from cake_tui.rules import Evidence, Rule, confidence
from cake_tui.rules._blocks import tasks

UNEVEN = 0.10  # of the slowest thread's time


def uneven_work(evidence: Evidence) -> Finding | None:
    """Compare the slowest thread with the mean, as measured, and as the count of tasks predicts."""
    cores = evidence.device.cores
    profile, schedule = evidence.profile, evidence.schedule
    measured_pct = profile.imbalance_pct if profile is not None else None
    count = tasks(evidence.problem, schedule, evidence.device) if schedule is not None else None
    planned = None if count is None else math.ceil(count / cores) * cores / count - 1.0
    seen = None if measured_pct is None else measured_pct / 100.0
    uneven = max(value for value in (seen, planned if seen is None else None, 0.0) if value is not None)
    if cores < 2 or not uneven > UNEVEN:
        return None
    can_cut = schedule is not None and schedule.knob("threads_x") is not None
    agrees = None if seen is None or planned is None else planned > UNEVEN / 2.0
    return Finding(
        rule="uneven_work",
        label="uneven work",
        kind="numeric" if can_cut else "structural",
        confidence=confidence(0.4 + uneven, agrees, measured=seen is not None),
        evidence=(("imbalance_pct", measured_pct), ("tasks", count), ("cores", cores)),
        actions=("change_block_config", "split_k") if can_cut else ("use_packed_panels", "use_tiled_loops"),
    )


PLUGIN: Rule = uneven_work
