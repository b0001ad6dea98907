"""Error margin: right, but nearer to its bound than honest arithmetic comes.

*Signal*: the largest error is more than half of what the check allows.

*Why it matters*: another seed, shape or compiler may carry it over the bound, and a submission that fails is worth
nothing; the next change of the summation order starts with what is left.

*Try*: undo the last re-association; sum fewer terms in one go (smaller parts of k), keep every product in fp32.
"""

from __future__ import annotations

from cake_tui.model.finding import Finding
from cake_tui.rules import Evidence, Rule, confidence

HALF = 0.5


def error_margin(evidence: Evidence) -> Finding | None:
    """Compare the largest error with its bound."""
    agreement = evidence.agreement
    if agreement is None or not agreement.bound_share > HALF:
        return None
    return Finding(
        rule="error_margin",
        label="error margin",
        kind="trust",
        confidence=confidence(agreement.bound_share, True, measured=True),
        evidence=(
            ("bound_share", agreement.bound_share),
            ("max_abs_err", agreement.max_abs_err),
            ("worst_unit", agreement.worst_unit),
        ),
        actions=("revert_last",),
    )


PLUGIN: Rule = error_margin
