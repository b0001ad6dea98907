"""No vector code: the compiler left the arithmetic scalar, or used narrower vectors than the core has.

*Signal*: less than half of the floating-point instructions in the assembly work on vectors, or the widest vector is
narrower than the device's; the compiler's report names the loops it gave up on.

*Why it matters*: a scalar instruction does a fourth to a sixteenth of what a vector one does in the same time.

*Try*: contiguous inner loops over a constant number of elements, a vector width that the core has, and a structure
whose micro-kernel is written in vectors.
"""

from __future__ import annotations

from cake_tui.model.finding import Finding
from cake_tui.rules import Evidence, Rule, confidence

ENOUGH_SHARE = 0.5
BUSY_PCT = 50.0  # whoever keeps the peak this busy has vector code, whatever the count says


def no_vector_code(evidence: Evidence) -> Finding | None:
    """Look at the share and the width of vector instructions that the assembly shows."""
    facts, device = evidence.facts, evidence.device
    if facts is None or facts.vector_share is None or device.vector_bytes == 0:
        return None
    share = facts.vector_share
    width = facts.vector_bytes if facts.vector_bytes is not None else device.vector_bytes
    scalar = share < ENOUGH_SHARE
    narrow = not scalar and 0 < width < device.vector_bytes
    if not scalar and not narrow:
        return None
    busy = evidence.profile.sm_busy_pct if evidence.profile is not None else None
    agrees = None if busy is None else busy < BUSY_PCT
    lost = 1.0 - share if scalar else 1.0 - width / device.vector_bytes
    seen: tuple[tuple[str, float | str | None], ...] = (
        ("vector_share", round(share, 3)),
        ("vector_bytes", width),
        ("device_vector_bytes", device.vector_bytes),
        ("sm_busy_pct", busy),
    )
    if facts.missed_loops:
        seen += (("compiler", facts.missed_loops[0][:200]),)
    return Finding(
        rule="no_vector_code",
        label="no vector code",
        kind="structural" if scalar else "numeric",
        confidence=confidence(lost, agrees, measured=busy is not None),
        evidence=seen,
        actions=("apply_vectorize", "use_packed_panels") if scalar else ("apply_vectorize",),
    )


PLUGIN: Rule = no_vector_code
