"""Which of the proposals go on: the best by prediction, ties with them, and the only one of its structure."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from cake_tui.ir.cost.estimate import Estimate


def screen(
    estimates: Sequence[Estimate | None], n: int, audit: float, rng: random.Random
) -> tuple[list[int], list[int], list[int]]:
    """Return the positions kept, those audited and those dropped, each in order of position.

    Of the estimates the `n` fastest are kept, besides those that abstain. Kept too is what ties with the last of
    them (closer than the model's own error tells apart) and what is the only one of its structure. An `audit` share
    of the rest, drawn by `rng`, goes on all the same. A model that has measured little expects a large error, so that
    it drops little.
    """
    places = list(range(len(estimates)))
    if len(places) <= n:
        return places, [], []
    known = [(one, at) for at, one in enumerate(estimates) if one is not None and one.abstains is None]
    if not known:
        return places, [], []
    order = sorted(known, key=lambda pair: (pair[0].predicted_us, pair[1]))
    kept = set(places) - {at for _, at in known}
    room = max(1, n - len(kept))
    kept |= {at for _, at in order[:room]}
    worst = order[min(room, len(order)) - 1][0]
    structures = [one.structure for one, _ in known]
    for one, at in order:
        tie = math.log(one.predicted_us / worst.predicted_us) <= one.error
        if tie or structures.count(one.structure) == 1:
            kept.add(at)
    return _with_audits(kept, places, audit, rng)


def _with_audits(
    kept: set[int], places: list[int], audit: float, rng: random.Random
) -> tuple[list[int], list[int], list[int]]:
    dropped = [at for at in places if at not in kept]
    audited = [at for at in dropped if rng.random() < audit]
    return sorted(kept), audited, [at for at in dropped if at not in audited]
