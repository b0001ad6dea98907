"""What warps wait for, by a profiler's counters: shares of stall reasons, and how idle the schedulers are."""

from __future__ import annotations

from cake_tui.model.facts import Profile
from cake_tui.rules import Evidence

LOADS = ("long_scoreboard", "lg_throttle")  # global and local memory: the answer, the queue
SHARED = ("short_scoreboard", "mio_throttle")  # shared memory: the answer, the queue
LATENCY = ("long_scoreboard", "wait", "short_scoreboard")  # whatever more work in flight would hide
ROOF_PCT = 60.0  # of a unit's peak: above it the unit is the roof, below on all units it is latency
IDLE_RANGE_PCT = 60.0


def counted(evidence: Evidence) -> Profile | None:
    """Return the candidate's counters where a profiler took them, else None."""
    profile = evidence.profile
    return profile if profile is not None and profile.source == "ncu" else None


def share(profile: Profile, *reasons: str) -> float | None:
    """Return the share of all waiting that these reasons make up, 0..1; None where stalls were not counted."""
    if not profile.stalls:
        return None
    known = dict(profile.stalls)
    return min(sum(known.get(reason, 0.0) for reason in reasons), 1.0)


def idle(profile: Profile) -> float:
    """Return how much stalls matter, 0..1: not at all while the schedulers issue nevertheless; 1 where unknown."""
    if profile.issue_active_pct is None:
        return 1.0
    return min(max((100.0 - profile.issue_active_pct) / IDLE_RANGE_PCT, 0.0), 1.0)


def fullest_pct(profile: Profile) -> float | None:
    """Return how near memory or the second-level cache is to its peak, percent, whichever is nearer."""
    known = [value for value in (profile.memory_throughput_pct, profile.l2_throughput_pct) if value is not None]
    return max(known, default=None)


def percent(value: float | None) -> float | None:
    """Return a share as a percentage to one digit, as evidence shows it."""
    return None if value is None else round(100.0 * value, 1)
