"""Latency not hidden: warps wait for single answers, and there is too little else to do meanwhile.

*Signal*: 40 % or more of all waiting is for the result of an earlier instruction or load, the schedulers issue in
less than 60 % of the cycles, and neither memory nor the second-level cache is near its peak.

*Why it matters*: an answer from memory takes some hundred cycles whatever is asked; only more independent work in
flight, in the same thread or in other warps, fills them.

*Try*: unroll so that several loads are on their way at once, load the next tile while this one is computed, more
independent sums a thread, more warps a multiprocessor.
"""

from __future__ import annotations

from cake_tui.model.finding import Finding
from cake_tui.rules import Evidence, Rule, confidence
from cake_tui.rules._blocks import number
from cake_tui.rules._waiting import LATENCY, ROOF_PCT, counted, fullest_pct, idle, percent, share

WAITS = 0.40
ISSUES_PCT = 60.0
FEW_WARPS_PCT = 50.0
LITTLE_UNROLL = 2


def latency_not_hidden(evidence: Evidence) -> Finding | None:
    """Look at waits for answers while no unit is at its roof."""
    profile = counted(evidence)
    if profile is None:
        return None
    waits, fullest = share(profile, *LATENCY), fullest_pct(profile)
    if waits is None or waits < WAITS or (fullest is not None and fullest >= ROOF_PCT):
        return None
    if profile.issue_active_pct is not None and not profile.issue_active_pct < ISSUES_PCT:
        return None
    unroll = evidence.schedule.knob("unroll") if evidence.schedule is not None else None
    little = (
        evidence.schedule is not None and unroll is not None and number(evidence.schedule, "unroll") <= LITTLE_UNROLL
    )
    few = profile.sm_occupancy_pct is not None and profile.sm_occupancy_pct < FEW_WARPS_PCT
    agrees = True if little or few or fullest is not None else None
    return Finding(
        rule="latency_not_hidden",
        label="latency not hidden",
        kind="numeric",
        confidence=confidence(waits * idle(profile), agrees, measured=True),
        evidence=(
            ("latency_stalls_pct", percent(waits)),
            ("issue_active_pct", profile.issue_active_pct),
            ("sm_occupancy_pct", profile.sm_occupancy_pct),
            ("memory_throughput_pct", profile.memory_throughput_pct),
            ("unroll", unroll),
        ),
        actions=("apply_unroll", "apply_register_block", "change_block_config"),
    )


PLUGIN: Rule = latency_not_hidden
