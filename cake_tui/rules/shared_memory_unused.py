"""Shared memory unused: threads of a block load the same operands from memory, each for itself.

*Signal*: a product of matrices whose blocks use less than an eighth of the shared memory that a multiprocessor has,
while its warps wait for loads (without a profiler: while its arithmetic is less than a quarter busy).

*Why it matters*: a block of 16 x 16 results needs each operand 16 times; from shared memory that costs a sixteenth of
the loads.

*Try*: tiles of both operands in shared memory, loaded together by the block; then a block of results a thread.
"""

from __future__ import annotations

from cake_tui.model.finding import Finding
from cake_tui.rules import Evidence, Rule, confidence
from cake_tui.rules._waiting import LOADS, counted, idle, percent, share

BARELY = 0.12
WAITS = 0.30
BUSY_PCT = 25.0


def shared_memory_unused(evidence: Evidence) -> Finding | None:
    """Compare what blocks use of a multiprocessor's shared memory with what it has."""
    profile, device = evidence.profile, evidence.device
    if device.target != "cuda" or evidence.problem.family != "contraction" or profile is None:
        return None
    used = _used(evidence)
    if used is None or not used < BARELY:
        return None
    counters = counted(evidence)
    waits = share(counters, *LOADS) if counters is not None else None
    if waits is not None:
        if waits < WAITS:
            return None
        found = confidence(waits * idle(profile), True, measured=True)
    else:
        busy = profile.sm_busy_pct
        if busy is None or not busy < BUSY_PCT:
            return None
        found = confidence(1.0 - busy / 100.0, None, measured=False)
    return Finding(
        rule="shared_memory_unused",
        label="shared memory unused",
        kind="structural",
        confidence=found,
        evidence=(
            ("shared_memory_used_pct", percent(used)),
            ("load_stalls_pct", percent(waits)),
            ("sm_busy_pct", profile.sm_busy_pct),
        ),
        actions=("apply_shared_memory_load", "use_tiled_loops"),
    )


def _used(evidence: Evidence) -> float | None:
    """Share of a multiprocessor's shared memory that its resident blocks use; None where it is unknown."""
    profile, facts, device = evidence.profile, evidence.facts, evidence.device
    static = profile.smem_static_bytes if profile is not None else None
    if static is None and facts is not None:
        static = facts.smem_static_bytes
    dynamic = profile.max_dynamic_smem_bytes if profile is not None else None
    if static is None or dynamic is None:
        return None
    if static + dynamic == 0:
        return 0.0
    if profile is None or not profile.waves or profile.blocks is None or not device.smem_per_sm_bytes:
        return None
    resident = max(1.0, profile.blocks / (profile.waves * max(device.cores, 1)))
    return (static + dynamic) * resident / device.smem_per_sm_bytes


PLUGIN: Rule = shared_memory_unused
