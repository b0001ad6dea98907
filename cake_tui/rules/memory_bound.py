"""Memory bound: moving the bytes that must move takes most of the time.

*Signal*: the least traffic of the problem over the measured time is 60 % or more of the memory's peak, and arithmetic
is less busy than memory.

*Why it matters*: no change of the inner loop helps while it waits for memory; only fewer bytes, or each byte used more
often, do.

*Try*: reuse each element more often before it leaves the cache (larger tiles, packed panels), wider loads, and
fusing whatever reads or writes the same data again.
"""

from __future__ import annotations

from cake_tui.model.finding import Finding
from cake_tui.rules import Evidence, Rule, confidence

ROOF_PCT = 60.0  # below it the memory is not the roof; a wait for single loads is something else
IDLE_RANGE_PCT = 60.0


def memory_bound(evidence: Evidence) -> Finding | None:
    """Compare the memory's share of its peak with the arithmetic's."""
    profile = evidence.profile
    if profile is None or profile.memory_throughput_pct is None or evidence.time_us is None:
        return None
    memory, busy = profile.memory_throughput_pct, profile.sm_busy_pct
    if not memory >= ROOF_PCT or (busy is not None and not busy <= memory):
        return None
    idle = 1.0 if busy is None else min(max((100.0 - busy) / IDLE_RANGE_PCT, 0.0), 1.0)
    agrees = True if profile.source == "ncu" else None
    return Finding(
        rule="memory_bound",
        label="memory bound",
        kind="structural",
        confidence=confidence(min(memory, 100.0) / 100.0 * idle, agrees, measured=True),
        evidence=(("memory_throughput_pct", memory), ("sm_busy_pct", busy)),
        actions=("apply_shared_memory_load", "apply_tiling", "apply_vectorize"),
    )


PLUGIN: Rule = memory_bound
