"""Step 5: of up to twice as many proposals keep those that the cost model expects to do best."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from cake_tui.config import Proposing
from cake_tui.ir import cost
from cake_tui.steps.plan import Draft


def screen(
    drafts: Sequence[Draft], slots: int, proposing: Proposing, rng: random.Random
) -> tuple[list[Draft], list[Draft]]:
    """Return what goes on, so many `slots` and what ties with the last of them, and what is dropped.

    One in ten (`audit`) of the dropped goes on all the same, marked as an audit, so that a wrong model shows.
    """
    if not proposing.screen or len(drafts) <= slots:
        return list(drafts), []
    kept, audited, dropped = cost.screen([one.estimate for one in drafts], slots, proposing.audit, rng)
    chosen = [drafts[at] for at in kept] + [msgspec.structs.replace(drafts[at], audit=True) for at in audited]
    return chosen, [drafts[at] for at in dropped]
