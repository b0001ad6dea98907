"""Over a limit: the candidate asked for more than the device or the problem has.

*Signal*: a law or the launch refused it with two numbers: what was asked for and what there is.

*Why it matters*: every larger value of the same knob fails as well; trying it again in another mixture costs a slot.

*Try*: stay below the limit that is named: smaller blocks or fewer stages, in the knob that drives this number.
"""

from __future__ import annotations

from cake_tui.model.finding import Finding
from cake_tui.model.outcome import LaunchFailed, Rejected
from cake_tui.rules import Evidence, Rule, confidence

# knob that a limit names -> the action that sets it
_SETS = {
    "thread_m": "apply_register_block",
    "thread_n": "apply_register_block",
    "block_k": "apply_tiling",
    "threads_x": "change_block_config",
    "threads_y": "change_block_config",
    "vector": "apply_vectorize",
    "unroll": "apply_unroll",
    "pad": "avoid_bank_conflict",
    "split_k": "split_k",
}


def over_limit(evidence: Evidence) -> Finding | None:
    """Repeat the limit with its numbers, so that nobody has to find them in a log."""
    outcome = evidence.outcome
    if isinstance(outcome, Rejected):
        told = next((one for one in outcome.diagnostics if one.asked is not None and one.available is not None), None)
        if told is None:
            return None
        name, asked, available, unit = told.limit or told.field, told.asked, told.available, told.unit
        nearest, action = told.nearest, _SETS.get(told.field)
    elif isinstance(outcome, LaunchFailed) and outcome.asked is not None and outcome.available is not None:
        name, asked, available, unit = outcome.limit or "launch", outcome.asked, outcome.available, outcome.unit
        nearest, action = None, None
    else:
        return None
    return Finding(
        rule="over_limit",
        label="over limit",
        kind="numeric",
        confidence=confidence(1.0, True, measured=True),
        evidence=(
            ("limit", name),
            ("asked", asked),
            ("available", available),
            ("unit", unit),
            ("nearest_legal", nearest),
        ),
        actions=(action,) if action is not None else (),
    )


PLUGIN: Rule = over_limit
