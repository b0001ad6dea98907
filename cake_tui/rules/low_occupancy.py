"""Low occupancy: too few warps on a multiprocessor to fill each other's waits.

*Signal*: less than half of the warps that a multiprocessor can hold are there, and its schedulers issue in less than
60 % of the cycles (without a profiler: less than a quarter would fit, and arithmetic is less than half busy).

*Why it matters*: while one warp waits another one works, if there is another one. Few warps are no fault by
themselves: a kernel with much independent work in each thread keeps the schedulers busy with an eighth of them.

*Try*: what the limit names. Too few blocks: smaller blocks or split-k. Registers: a smaller register block. Shared
memory: a smaller tile or fewer stages.
"""

from __future__ import annotations

from cake_tui.model.facts import Profile
from cake_tui.model.finding import Finding
from cake_tui.rules import Evidence, Rule, confidence
from cake_tui.rules._waiting import LATENCY, counted, idle, percent, share

ENOUGH_PCT = 50.0
FIT_PCT = 25.0  # of what would fit, where nobody counted what was there
ISSUES_PCT = 60.0
BUSY_PCT = 50.0
WAITS = 0.5
FEW_BLOCKS = "too few blocks"
_CURES: dict[str | None, tuple[str, ...]] = {
    FEW_BLOCKS: ("split_k", "change_block_config", "apply_register_block"),
    "registers": ("apply_register_block", "apply_unroll"),
    "shared memory": ("apply_tiling", "change_block_config"),
}


def low_occupancy(evidence: Evidence) -> Finding | None:
    """Compare the warps that were there, or would fit, with those that a multiprocessor can hold."""
    profile = evidence.profile
    if profile is None or evidence.device.target != "cuda":
        return None
    limiter = _limiter(profile)
    if counted(evidence) is not None:
        here, issue = profile.sm_occupancy_pct, profile.issue_active_pct
        if here is None or not here < ENOUGH_PCT or (issue is not None and not issue < ISSUES_PCT):
            return None
        waits = share(profile, *LATENCY)
        agrees = None if waits is None else waits >= WAITS
        sure = confidence((1.0 - here / ENOUGH_PCT) * idle(profile), agrees, measured=True)
    else:
        here, busy, waits = profile.occupancy_limit_pct, profile.sm_busy_pct, None
        if here is None or not here < FIT_PCT or (busy is not None and not busy < BUSY_PCT):
            return None
        sure = confidence(1.0 - here / ENOUGH_PCT, None, measured=False)
    return Finding(
        rule="low_occupancy",
        label="low occupancy",
        kind="structural" if limiter == FEW_BLOCKS else "numeric",
        confidence=sure,
        evidence=(
            ("occupancy_pct", here),
            ("limited_by", limiter),
            ("would_fit_pct", profile.occupancy_limit_pct),
            ("waves", profile.waves),
            ("regs_per_thread", profile.regs_per_thread),
            ("latency_stalls_pct", percent(waits)),
        ),
        actions=_CURES.get(limiter, ("change_block_config",)),
    )


def _limiter(profile: Profile) -> str | None:
    """Return what keeps more warps away: a grid that does not fill the device comes before what would fit."""
    if profile.waves is not None and profile.waves < 1.0:
        return FEW_BLOCKS
    return profile.occupancy_limiter


PLUGIN: Rule = low_occupancy
