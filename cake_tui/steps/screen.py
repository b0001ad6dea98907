"""Step 5: of up to twice as many proposals keep those that the cost model expects to do best."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from cake_tui.config import Proposing
from cake_tui.ir import cost
from cake_tui.steps.plan import Plan


def screen(plans: Sequence[Plan], proposing: Proposing, rng: random.Random) -> tuple[list[Plan], list[Plan]]:
    """Return what goes on and what is dropped; what a person asked for always goes on and takes the first slots.

    One in ten (`audit`) of the dropped goes on all the same, marked as an audit, so that a wrong model shows.
    """
    asked = [one for one in plans if one.proposal.chosen_by == "person"]
    rest = [one for one in plans if one.proposal.chosen_by != "person"]
    slots = max(0, proposing.round - len(asked))
    if not proposing.screen or len(rest) <= slots:
        return [*asked, *rest], []
    kept, audited, dropped = cost.screen([one.estimate for one in rest], slots, proposing.audit, rng)
    chosen = [rest[at] for at in kept] + [msgspec.structs.replace(rest[at], audit=True) for at in audited]
    return [*asked, *chosen], [rest[at] for at in dropped]
