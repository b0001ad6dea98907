"""Memory saturated: memory works near its peak for bytes that were fetched before, and the arithmetic idles.

*Signal*: memory or the second-level cache at 60 % of its peak or more, the schedulers issue in less than 40 % of the
cycles, and at least twice the problem's own bytes went through memory.

*Why it matters*: the same numbers come again and again over the slowest link of the device; nothing in the inner loop
can help before that stops.

*Try*: tiles that are loaded once and used by the whole block: shared memory, a larger tile, more results a thread.
"""

from __future__ import annotations

from cake_tui.model.finding import Finding
from cake_tui.rules import Evidence, Rule, confidence
from cake_tui.rules._waiting import ROOF_PCT, counted, fullest_pct, idle

ISSUES_PCT = 40.0
AGAIN = 2.0  # times the bytes that must move


def memory_saturated(evidence: Evidence) -> Finding | None:
    """Compare the traffic with the least there could be."""
    profile = counted(evidence)
    if profile is None or profile.dram_bytes is None or not profile.bytes_moved:
        return None
    fullest, again = fullest_pct(profile), profile.dram_bytes / profile.bytes_moved
    if fullest is None or not fullest >= ROOF_PCT or not again >= AGAIN:
        return None
    if profile.issue_active_pct is not None and not profile.issue_active_pct <= ISSUES_PCT:
        return None
    return Finding(
        rule="memory_saturated",
        label="memory saturated",
        kind="structural",
        confidence=confidence(min(fullest, 100.0) / 100.0 * idle(profile), True, measured=True),
        evidence=(
            ("memory_throughput_pct", profile.memory_throughput_pct),
            ("l2_throughput_pct", profile.l2_throughput_pct),
            ("issue_active_pct", profile.issue_active_pct),
            ("bytes_over_least", round(again, 2)),
        ),
        actions=("use_tiled_loops", "apply_shared_memory_load", "apply_tiling", "apply_register_block"),
    )


PLUGIN: Rule = memory_saturated
