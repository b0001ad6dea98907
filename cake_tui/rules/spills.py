"""Spills: the kernel needs more registers than there are.

*Signal*: the assembly (on a GPU the assembler's report) has values moved to and from the stack, counted against the
multiply-adds beside them; a profiler counts the accesses that were really made.

*Why it matters*: each spilled value costs a store and a load in the innermost loop, where nothing else hides them.

*Try*: a smaller register block, less unrolling, or narrower vectors; on a GPU fewer threads a block, which leaves each
of them more registers.
"""

from __future__ import annotations

from cake_tui.model.finding import Finding
from cake_tui.rules import Evidence, Rule, confidence

SAVED_REGISTERS = 4  # moves a function may make at its entry and exit without a loss
BUSY_PCT = 70.0


def spills(evidence: Evidence) -> Finding | None:
    """Count stack moves against multiply-adds, and ask the profiler whether they were made."""
    facts, profile = evidence.facts, evidence.profile
    made = profile.local_accesses if profile is not None else None
    if facts is None or made == 0 or (facts.spill_stores is None and facts.spill_loads is None and not made):
        return None
    stores, loads = facts.spill_stores or 0, facts.spill_loads or 0
    moves = stores + loads
    if moves <= SAVED_REGISTERS and not made:
        return None
    busy = profile.sm_busy_pct if profile is not None else None
    beside = moves + (facts.fma_instructions or 0)
    agrees = True if made else None if busy is None else busy < BUSY_PCT
    return Finding(
        rule="spills",
        label="spills",
        kind="numeric",
        confidence=confidence((moves / beside if beside else 0.0) + 0.3, agrees, measured=busy is not None),
        evidence=(
            ("spill_stores", stores),
            ("spill_loads", loads),
            ("local_accesses", made),
            ("fma_instructions", facts.fma_instructions),
            ("regs_per_thread", facts.registers),
            ("sm_busy_pct", busy),
        ),
        actions=("apply_register_block", "apply_unroll", "change_block_config"),
    )


PLUGIN: Rule = spills
