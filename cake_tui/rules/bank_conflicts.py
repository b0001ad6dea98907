"""Bank conflicts: lanes of a warp ask the same bank of shared memory for different words.

*Signal*: a tenth or more of the passes over shared memory are repeats because of conflicts, weighted by how much of
all waiting is for shared memory; without a profiler, what the cost model expects of the access pattern.

*Why it matters*: conflicting lanes are served one after the other, up to 32 times as slowly. Where warps hardly wait
for shared memory, conflicts cost hardly anything, however many there are.

*Try*: a pad of 4 behind each row (1 where no wide access needs 16-byte alignment), a swizzle, or another block shape.
"""

from __future__ import annotations

import math

from cake_tui.model.facts import Profile
from cake_tui.model.finding import Finding
from cake_tui.rules import Evidence, Rule, confidence
from cake_tui.rules._waiting import SHARED, counted, idle, percent, share

EXCESS = 0.10
EXPECTED = 2.0  # times as many passes, by the cost model


def bank_conflicts(evidence: Evidence) -> Finding | None:
    """Weigh the share of conflicts by the share of waiting; without counters ask the cost model."""
    profile = counted(evidence)
    return _expected(evidence) if profile is None else _measured(evidence, profile)


def _measured(evidence: Evidence, profile: Profile) -> Finding | None:
    excess, waits = profile.bank_conflict_share, share(profile, *SHARED)
    if excess is None or waits is None or not excess >= EXCESS:
        return None
    believed = evidence.terms.get("conflicts")
    return _finding(
        confidence(waits * idle(profile), True, measured=True),
        (
            ("conflicts_pct", percent(excess)),
            ("shared_stalls_pct", percent(waits)),
            ("conflicts", profile.shared_mem_bank_conflicts),
            ("issue_active_pct", profile.issue_active_pct),
            ("expected_factor", None if believed is None else round(math.exp(believed), 2)),
        ),
    )


def _expected(evidence: Evidence) -> Finding | None:
    believed = evidence.terms.get("conflicts")
    if believed is None or evidence.device.target != "cuda" or not believed >= math.log(EXPECTED):
        return None
    share_lost = 1.0 - math.exp(-believed)
    return _finding(confidence(share_lost, None, measured=False), (("expected_factor", round(math.exp(believed), 2)),))


def _finding(sure: float, evidence: tuple[tuple[str, float | str | None], ...]) -> Finding:
    return Finding(
        rule="bank_conflicts",
        label="bank conflicts",
        kind="numeric",
        confidence=sure,
        evidence=evidence,
        actions=("avoid_bank_conflict", "change_block_config"),
    )


PLUGIN: Rule = bank_conflicts
