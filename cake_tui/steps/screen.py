"""Step 5: of up to twice as many proposals keep those that the cost model expects to do best."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from cake_tui.ir import cost
from cake_tui.steps.plan import Plan


def screen(
    plans: Sequence[Plan], slots: int, on: bool, audit: float, rng: random.Random
) -> tuple[list[Plan], list[Plan]]:
    """Return what goes on, into at most so many `slots` besides audits, and what is dropped.

    One in ten (`audit`) of the dropped goes on all the same, marked as an audit, so that a wrong model shows.
    """
    if not on or len(plans) <= slots:
        return list(plans), []
    kept, audited, dropped = cost.screen([one.estimate for one in plans], slots, audit, rng)
    chosen = [plans[at] for at in kept] + [msgspec.structs.replace(plans[at], audit=True) for at in audited]
    return chosen, [plans[at] for at in dropped]
