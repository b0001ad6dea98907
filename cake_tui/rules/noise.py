"""Noise: the machine spreads more than the gains that are looked for.

*Signal*: self-pairs of the best kernel spread by 2 % or more, or the gate could not decide because of the spread or
of a clock that moved.

*Why it matters*: small gains cost many series to see, and some are missed; a win that was measured here may look
different elsewhere.

*Try*: end other work on this machine, give the run its own cores, prefer moves with large effects for now.
"""

from __future__ import annotations

from cake_tui.model.finding import Finding
from cake_tui.rules import Evidence, Rule, confidence

NOISY = 0.02  # pair noise, as a fraction
VERY_NOISY = 0.10


def noise(evidence: Evidence) -> Finding | None:
    """Look at the session's pair noise and at what the gate said."""
    pair_noise, gate = evidence.pair_noise, evidence.gate
    undecided = gate is not None and gate.decision == "noisy"
    codes = ", ".join(gate.stale_codes) if gate is not None else ""
    loud = pair_noise is not None and pair_noise >= NOISY
    if not loud and not undecided:
        return None
    share = 0.5 + (pair_noise or 0.0) / VERY_NOISY / 2.0
    return Finding(
        rule="noise",
        label="noise",
        kind="trust",
        confidence=confidence(share, True if undecided or codes else None, measured=True),
        evidence=(
            ("pair_noise_pct", None if pair_noise is None else round(100.0 * pair_noise, 2)),
            ("gate", gate.decision if gate is not None else None),
            ("stale_codes", codes or None),
        ),
    )


PLUGIN: Rule = noise
