"""What a launch costs, piece by piece, before anything is learnt: times in microseconds and the terms beside them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

LEAST_US = 0.01


@dataclass
class Figures:
    """Times of one launch by what bounds it, and terms: dimensionless features whose weights are learnt."""

    times_us: dict[str, float] = field(default_factory=dict)
    terms: dict[str, float] = field(default_factory=dict)

    @property
    def total_us(self) -> float:
        """The largest of the times: a roofline with more than two roofs."""
        return max((*self.times_us.values(), LEAST_US))


def combine(launches: list[Figures], overhead_us: float) -> Figures:
    """Add up launches that run one after another: times of a kind add, terms weigh by their launch's share."""
    whole = Figures()
    total = sum(one.total_us for one in launches) or LEAST_US
    for one in launches:
        share = one.total_us / total
        for name, value in one.times_us.items():
            whole.times_us[name] = whole.times_us.get(name, 0.0) + value
        for name, value in one.terms.items():
            whole.terms[name] = whole.terms.get(name, 0.0) + share * value
    roof = total + overhead_us * len(launches)
    for name in sorted(whole.times_us):
        # how near each roof is to the one that binds, cut where it cannot matter any more
        whole.terms[f"roof.{name}"] = max(-4.0, math.log(max(whole.times_us[name], 1e-6) / roof))
    whole.terms["launches"] = math.log(len(launches))
    whole.times_us = {"all": roof}
    return whole
