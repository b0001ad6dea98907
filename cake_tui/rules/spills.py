"""Spills: the register block needs more registers than there are.

*Signal*: the assembly moves vectors to and from the stack; counted against the multiply-adds beside them.

*Why it matters*: each spilled value costs a store and a load in the innermost loop, where nothing else hides them.

*Try*: a smaller register block, less unrolling, or narrower vectors.
"""

from __future__ import annotations

from cake_tui.model.finding import Finding
from cake_tui.rules import Evidence, Rule, confidence

SAVED_REGISTERS = 4  # moves a function may make at its entry and exit without a loss
BUSY_PCT = 70.0


def spills(evidence: Evidence) -> Finding | None:
    """Count stack moves against multiply-adds."""
    facts = evidence.facts
    if facts is None or (facts.spill_stores is None and facts.spill_loads is None):
        return None
    stores, loads = facts.spill_stores or 0, facts.spill_loads or 0
    moves = stores + loads
    if moves <= SAVED_REGISTERS:
        return None
    busy = evidence.profile.sm_busy_pct if evidence.profile is not None else None
    beside = moves + (facts.fma_instructions or 0)
    return Finding(
        rule="spills",
        label="spills",
        kind="numeric",
        confidence=confidence(
            moves / beside + 0.3, None if busy is None else busy < BUSY_PCT, measured=busy is not None
        ),
        evidence=(
            ("spill_stores", stores),
            ("spill_loads", loads),
            ("fma_instructions", facts.fma_instructions),
            ("sm_busy_pct", busy),
        ),
        actions=("apply_register_block", "apply_unroll"),
    )


PLUGIN: Rule = spills
