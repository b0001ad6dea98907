"""Plain loops: nothing is blocked, every element is fetched again for each use.

*Signal*: the schedule has no knob at all.

*Why it matters*: without blocks the time is the memory's, whatever the arithmetic could do.

*Try*: any other structure.
"""

from __future__ import annotations

from cake_tui.model.finding import Finding
from cake_tui.rules import Evidence, confidence


def plain_loops(evidence: Evidence) -> Finding | None:
    """Look at the schedule alone."""
    schedule = evidence.schedule
    if schedule is None or schedule.knobs or evidence.time_us is None:
        return None
    return Finding(
        rule="plain_loops",
        label="plain loops",
        kind="structural",
        confidence=confidence(1.0, None, measured=False),
        evidence=(("structure", schedule.structure),),
        actions=("use_tiled_loops",),
    )


PLUGIN = plain_loops
