"""What the guard around series holds as normal, what it decides about one, and at which rate a series ran."""

from __future__ import annotations

import math
import statistics

import msgspec

from cake_tui.model.measure import Series, Stale
from cake_tui.steps import gpu_clock

STEADY_STEP = 0.01  # S2: three readings in a row, each more than this above (or below) the one before, are a ramp
SHIFT = 0.02  # S4: off the normal rate by more than this
SHIFT_SERIES = 3  # S4, S8: for so many series in a row
PAUSE_S = 30.0  # S9: in all, until the guard goes on with what there is; half as long each time it did
CALM_SERIES = 10  # what held counts as gone after so many series in a row without it (S9: twice as many each time)

Quiet = tuple[float | None, float | None, float | None, float | None]
"""Load, steal, processes and device memory of others."""


class State(msgspec.Struct, frozen=True):
    """What the guard holds as normal, and its streak of refusals.

    Rates are dependent additions a nanosecond (on a GPU the device clock in GHz); None: not known yet.
    """

    rate: float | None = None
    load: float | None = None
    steal_pct: float | None = None
    step: float = STEADY_STEP
    shift: float = SHIFT
    learned: tuple[float, ...] = ()  # rates of the first series since the last baseline
    loads: tuple[float, ...] = ()  # of others, of the first series; which have their ups and downs
    steals: tuple[float, ...] = ()
    former: float | None = None  # the normal rate before this one
    last: tuple[float, ...] = ()  # the two latest readings
    shifted: tuple[float, ...] = ()  # rates of the series in a row that were off by more than 2 %
    refused: tuple[tuple[str, Series], ...] = ()  # lately, with the code that refused each
    passed: int = 0  # series kept since the last of them
    mixed: bool = False  # and among them
    credit: float | None = None  # refusals that the kept series have earned; None: no state was taken as normal yet
    quiet: Quiet | None = None  # what was normal before a busy state was taken as normal
    calm: int = 0  # series in a row, since then, that the quiet normal would have let through
    purse_s: float = PAUSE_S  # that may still be spent on pauses
    given_in: int = 0  # how often a busy state was taken as normal: who waits in vain waits less the next time
    foreign: float | None = None  # processes of others on the device, and the memory they hold
    foreign_bytes: float | None = None
    unlike: int = 0  # series of this match that were repeated because its arms ran at different clocks
    memory_mhz: float | None = None
    memory_shifted: tuple[float, ...] = ()
    hot: bool = False  # a throttled device was taken as it is
    heated: int = 0  # how often
    cool: int = 0  # series in a row, since then, without throttling
    standing: tuple[tuple[str, int], ...] = ()  # codes that hold without refusing, with the series since they were seen
    had_reading: bool = False
    broken: tuple[str, ...] = ()

    @property
    def shared(self) -> bool:
        """Others use the machine, and the guard has gone on all the same."""
        return self.quiet is not None


class Judgement(msgspec.Struct, frozen=True):
    """What to do with a series: keep it or take it again after `pause_s` seconds."""

    keep: bool
    stale: tuple[Stale, ...] = ()
    pause_s: float = 0.0
    rebaseline: bool = False  # the clock has another normal: refresh the incumbent's time
    recalibrate: bool = False  # the pair noise of before does not hold
    notice: str = ""  # for a person, where the guard gave up refusing
    flags: tuple[str, ...] = ()  # codes that hold for this series, journaled before
    label: str = ""  # what to know about a result that rests on this series


def rates_of(series: Series) -> tuple[float, ...]:
    """Return the usable readings of the rate: the device's own in first and last sample, else before and after."""
    device = gpu_clock.holder_ghz(series)
    if device:
        return device if len(device) == 1 else (device[0], device[-1])
    found = []
    for clock in gpu_clock.clocks_of(series):
        # Without a clock on the device NVML's must do: it lags behind, but shows an idle device.
        from_nvml = clock.sm_mhz / 1e3 if clock.read_mono is not None and clock.sm_mhz is not None else None
        found.append(clock.rate if clock.rate is not None else from_nvml)
    return tuple(rate for rate in found if rate is not None and math.isfinite(rate) and rate > 0.0)


def rate_of(series: Series) -> float | None:
    """Return the device's median; else the better of two readings: a preempted loop reads too low, never too high."""
    device = gpu_clock.holder_ghz(series)
    return statistics.median(device) if device else max(rates_of(series), default=None)


def unit(series: Series) -> str:
    """Return the unit of a series' rates."""
    on_gpu = gpu_clock.holder_ghz(series) or any(clock.read_mono is not None for clock in gpu_clock.clocks_of(series))
    return "GHz" if on_gpu else "additions/ns"
