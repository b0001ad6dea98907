"""Memory bound: the kernel waits for memory.

*Signal*: warps spend 40 % or more of their waiting on loads from memory; or, without a profiler, the least traffic of
the problem over the measured time is 60 % or more of the memory's peak and arithmetic is less busy than memory.

*Why it matters*: no change of the inner loop helps while it waits for memory; only fewer bytes, or each byte used
more often, do. Where memory itself is below 60 % of its peak the wait is for the answer, not for bandwidth: then more
loads in flight help.

*Try*: reuse each element more often before it leaves the cache (larger tiles, packed panels), wider loads, and fusing
whatever reads or writes the same data again; more unrolling where it is latency.
"""

from __future__ import annotations

from cake_tui.model.facts import Profile
from cake_tui.model.finding import Finding
from cake_tui.rules import Evidence, Rule, confidence
from cake_tui.rules._waiting import IDLE_RANGE_PCT, LOADS, ROOF_PCT, counted, fullest_pct, idle, percent, share

WAITS = 0.40
REUSE = ("apply_shared_memory_load", "apply_tiling", "apply_vectorize")


def memory_bound(evidence: Evidence) -> Finding | None:
    """Look at what warps wait for; without stalls compare the memory's share of its peak with the arithmetic's."""
    profile = evidence.profile
    if profile is None or evidence.time_us is None:
        return None
    waits = share(profile, *LOADS) if counted(evidence) is not None else None
    return _by_peaks(profile) if waits is None else _by_stalls(profile, waits)


def _by_stalls(profile: Profile, waits: float) -> Finding | None:
    if waits < WAITS:
        return None
    fullest = fullest_pct(profile)
    bandwidth = None if fullest is None else fullest >= ROOF_PCT
    return Finding(
        rule="memory_bound",
        label="memory bound",
        kind="structural",
        confidence=confidence(waits * idle(profile), bandwidth, measured=True),
        evidence=(
            ("load_stalls_pct", percent(waits)),
            ("waits_for", None if bandwidth is None else "bandwidth" if bandwidth else "latency"),
            ("memory_throughput_pct", profile.memory_throughput_pct),
            ("l2_throughput_pct", profile.l2_throughput_pct),
            ("issue_active_pct", profile.issue_active_pct),
        ),
        actions=(*REUSE, "apply_unroll"),
    )


def _by_peaks(profile: Profile) -> Finding | None:
    memory, busy = profile.memory_throughput_pct, profile.sm_busy_pct
    if memory is None or not memory >= ROOF_PCT or (busy is not None and not busy <= memory):
        return None
    unused = 1.0 if busy is None else min(max((100.0 - busy) / IDLE_RANGE_PCT, 0.0), 1.0)
    agrees = True if profile.source == "ncu" else None
    return Finding(
        rule="memory_bound",
        label="memory bound",
        kind="structural",
        confidence=confidence(min(memory, 100.0) / 100.0 * unused, agrees, measured=True),
        evidence=(("memory_throughput_pct", memory), ("sm_busy_pct", busy)),
        actions=REUSE,
    )


PLUGIN: Rule = memory_bound
