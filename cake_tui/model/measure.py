"""Measured values: samples, pairs, series and what the gate made of them. Times are microseconds."""

from __future__ import annotations

from typing import Literal

import msgspec


class Clock(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One reading of the machine around a series; None where it cannot be read.

    `mono` is when the timed section began or ended, monotonic seconds, where the evaluator says so. `rate` is the
    dependent-add loop's rate in additions a nanosecond; a GPU's own clock is in each `Pair`. `load` is the runnable
    tasks of others; `steal_pct` time taken by the hypervisor since the last one. What NVML tells of a GPU was read
    at `read_mono`: `reasons` why the clock is what it is now, `counters` how long each reason has held so far in
    nanoseconds (those that ever did), `health` what is wrong with the device, `error` the driver's words where it
    gave no clock.
    """

    mono: float
    rate: float | None = None
    load: float | None = None
    steal_pct: float | None = None
    temperature_c: float | None = None
    sm_mhz: float | None = None
    memory_mhz: float | None = None
    power_w: float | None = None
    reasons: tuple[str, ...] = ()
    foreign_processes: int | None = None
    foreign_bytes: float | None = None  # device memory that they hold
    sm_max_mhz: float | None = None
    power_limit_w: float | None = None
    counters: tuple[tuple[str, int], ...] = ()
    health: tuple[str, ...] = ()
    error: str = ""
    read_mono: float | None = None


class Pair(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Holder and candidate back to back: time a run of every ranked shape, by the problem's ranking.

    On a GPU each arm's sample says at which clock it ran: cycles a nanosecond, read on the device itself.
    """

    holder_us: float
    candidate_us: float
    holder_first: bool
    holder_ghz: float | None = None
    candidate_ghz: float | None = None


class Series(msgspec.Struct, frozen=True, gc=False):
    """A run of pairs on freshly allocated buffers, with the clock right before and right after."""

    pairs: tuple[Pair, ...]
    before: Clock | None = None
    after: Clock | None = None
    imbalance_pct: float | None = None  # candidate: slowest pool thread over the mean


class GateResult(msgspec.Struct, frozen=True, gc=False):
    """The gate's decision. `gain` is ln(t_holder / t_candidate) of the confirming series (else the last look)."""

    decision: Literal["accept", "reject", "undecided", "noisy"]
    gain: float
    gain_low: float  # lower one-sided 95 % bound
    looks: int
    series: int
    confirmed: bool
    reason: str
    candidate_us: float  # median over the deciding series
    holder_us: float
    stale_codes: tuple[str, ...] = ()

    @property
    def surely_slower(self) -> bool:
        """Rejected as slower, by every pair of look 0 or by the upper bound; else only no gain was found."""
        above = 2.0 * self.gain - self.gain_low  # the bounds lie alike on both sides
        return self.decision == "reject" and (above < 0.0 or (self.looks == 0 and self.gain < 0.0))


# Why a GPU's clock is what it is, by NVML's bits.
THROTTLE_REASONS = {
    0x1: "idle", 0x2: "application clocks", 0x4: "power cap", 0x8: "hardware slowdown", 0x10: "sync boost",
    0x20: "software thermal slowdown", 0x40: "hardware thermal slowdown", 0x80: "power brake", 0x100: "display clocks",
    0x200: "board limit", 0x400: "reliability",
}  # fmt: skip

# What each stale-clock code stands for.
STALE_NAMES = {
    "S0": "no reading", "S1": "old reading", "S2": "idle or ramp", "S3": "clocks differ within a pair",
    "S4": "another normal clock", "S5": "heat or hardware", "S6": "power cap", "S7": "clocks set by somebody",
    "S8": "another memory clock", "S9": "foreign load",
}  # fmt: skip


class Stale(msgspec.Struct, frozen=True, gc=False):
    """A stale-clock code with what was seen and what was done about it.

    Where another clock is normal from here on, `rate_before` and `rate_now` are both, as in `Clock.rate`.
    """

    code: str  # S0..S9
    saw: str
    reaction: str
    rate_before: float | None = None
    rate_now: float | None = None
