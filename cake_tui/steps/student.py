"""Student's t distribution for whole degrees of freedom: what the gate's looks compare with."""

from __future__ import annotations

import math
from functools import lru_cache


def cumulative(t: float, freedom: int) -> float:
    """Return P(T <= t) for `freedom` >= 1 degrees of freedom; raises ValueError below 1.

    Source: the finite series of Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 (odd)
    and 26.7.4 (even), with theta = arctan(t / sqrt(freedom)).
    """
    if freedom < 1:
        raise ValueError(f"degrees of freedom: found {freedom}, needed: 1 or more")
    if math.isinf(t):
        return 1.0 if t > 0 else 0.0
    theta = math.atan(abs(t) / math.sqrt(freedom))
    square = math.cos(theta) ** 2
    odd = freedom % 2 == 1
    term, total = (math.cos(theta), 0.0) if odd else (1.0, 0.0)
    index = 1 if odd else 0
    while index <= freedom - 2:
        total += term
        term *= square * (index + 1) / (index + 2)
        index += 2
    inside = 2.0 / math.pi * (theta + math.sin(theta) * total) if odd else math.sin(theta) * total
    return 0.5 + math.copysign(inside, t) / 2.0


@lru_cache(maxsize=4096)
def upper(level: float, freedom: int) -> float:
    """Return the t that a T of `freedom` degrees exceeds with probability `level`, 0 < level <= 0.5.

    Found by bisection of the tail; raises ValueError for a level outside.
    """
    if not 0.0 < level <= 0.5:
        raise ValueError(f"level: found {level}, needed: above 0 and at most 0.5")
    low, high = 0.0, 1.0
    while 1.0 - cumulative(high, freedom) > level:
        high *= 2.0
    for _ in range(80):
        middle = (low + high) / 2.0
        if 1.0 - cumulative(middle, freedom) > level:
            low = middle
        else:
            high = middle
    return high
