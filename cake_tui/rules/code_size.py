"""Code size: the kernel's instructions do not fit the instruction cache.

*Signal*: warps spend a tenth or more of their waiting on instructions that are not there yet; without a profiler,
code larger than the cache.

*Why it matters*: instructions come from the second-level cache then, and every warp that is at another place of the
code needs others.

*Try*: less unrolling, a smaller register block, a loop where code is repeated for each stage.
"""

from __future__ import annotations

from cake_tui.model.finding import Finding
from cake_tui.rules import Evidence, Rule, confidence
from cake_tui.rules._waiting import counted, idle, percent, share

CACHE_BYTES = 128 << 10  # of a multiprocessor; its first level holds a quarter
FIRST_BYTES = 32 << 10
WAITS = 0.10


def code_size(evidence: Evidence) -> Finding | None:
    """Look at waits for instructions, and at the size of the code."""
    code = evidence.facts.code_bytes if evidence.facts is not None else None
    profile = counted(evidence)
    waits = share(profile, "no_instruction") if profile is not None else None
    if evidence.device.target != "cuda":
        return None
    if profile is not None and waits is not None:
        if waits < WAITS:
            return None
        agrees = None if code is None else code >= FIRST_BYTES
        sure = confidence(waits * idle(profile), agrees, measured=True)
    elif code is not None and code > CACHE_BYTES:
        sure = confidence(1.0 - CACHE_BYTES / code + 0.3, None, measured=False)
    else:
        return None
    return Finding(
        rule="code_size",
        label="code size",
        kind="numeric",
        confidence=sure,
        evidence=(
            ("code_bytes", code),
            ("instruction_stalls_pct", percent(waits)),
            ("issue_active_pct", profile.issue_active_pct if profile is not None else None),
        ),
        actions=("apply_unroll", "apply_register_block"),
    )


PLUGIN: Rule = code_size
