"""Wrong answer: the check refused the output.

*Signal*: which probe refused it, how many elements, and how far the worst one is from its reference.

*Why it matters*: a wrong kernel has no time. A few wrong elements at an edge mean a tail; all of them mean an index; a
small error everywhere means lost precision.

*Try*: a block that divides the sizes when only tails are wrong; fewer terms a partial sum when the error is small.
"""

from __future__ import annotations

from cake_tui.model.finding import Finding
from cake_tui.model.outcome import WrongAnswer
from cake_tui.rules import Evidence, Rule, confidence


def wrong_answer(evidence: Evidence) -> Finding | None:
    """Say what the check saw in numbers."""
    outcome = evidence.outcome
    if not isinstance(outcome, WrongAnswer):
        return None
    share = outcome.bad_elements / outcome.elements if outcome.elements else None
    return Finding(
        rule="wrong_answer",
        label="wrong answer",
        kind="trust",
        confidence=confidence(1.0, True, measured=True),
        evidence=(
            ("failure", outcome.failure),
            ("input_set", outcome.input_set or None),
            ("shape", outcome.shape or None),
            ("wrong_share", share),
            ("max_abs_err", outcome.max_abs_err),
            ("worst_unit", outcome.worst_unit),
        ),
        actions=("revert_last",),
    )


PLUGIN: Rule = wrong_answer
