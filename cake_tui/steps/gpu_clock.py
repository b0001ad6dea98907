"""A GPU's clock around a series: what its own counters and NVML's readings say, one question a function."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

from cake_tui.model.measure import Clock, Series, Stale

OLD_S = 0.05  # S1: a reading farther off the timed section than this
UNLIKE = 0.005  # S3: mean clocks of both arms differ by more over `PAIRS` pairs
PAIRS = 4  # fewer scatter more: single samples of 2 ms differ by 0.2 to 0.4 % on an H200 by themselves
HEAT = ("hardware slowdown", "software thermal slowdown", "hardware thermal slowdown", "power brake")
HEAT_COUNTERS = ("thermal", "software thermal slowdown", "hardware thermal slowdown", "power brake")
CAP = "power cap"
HARMLESS = ("idle", CAP, *HEAT)  # reasons that are no setting of anybody
OTHER_PARTY = ("sync boost", "display clocks")


def clocks_of(series: Series) -> tuple[Clock, ...]:
    """Return the readings before and after, as far as there are any."""
    return tuple(clock for clock in (series.before, series.after) if clock is not None)


def holder_ghz(series: Series) -> tuple[float, ...]:
    """Return the device's clock in each of the holder's samples, in their order."""
    return _usable(pair.holder_ghz for pair in series.pairs)


def median_ghz(series: Iterable[Series]) -> float | None:
    """Return the median device clock of the candidate's samples; None where none was read."""
    found = [ghz for one in series for ghz in _usable(pair.candidate_ghz for pair in one.pairs)]
    return statistics.median(found) if found else None


def unlike(series: Series) -> float | None:
    """S3: how much faster the clock ran for the candidate than for the holder, as a fraction, where it matters."""
    holder, candidate = holder_ghz(series), _usable(pair.candidate_ghz for pair in series.pairs)
    if not holder or not candidate:
        return None
    off = statistics.fmean(candidate) / statistics.fmean(holder) - 1.0
    return off if abs(off) > UNLIKE * max(1.0, math.sqrt(PAIRS / len(candidate))) else None


def throttled(series: Series) -> str | None:
    """S5: heat or the hardware held the clock back; one reading of a bit is no proof, a counter that moved is."""
    moved = [f"{name} for {ms:.1f} ms" for name, ms in _advanced(series) if name in HEAT_COUNTERS]
    if moved:
        return f"{', '.join(moved)} of this series{_heat(series)}"
    both = _reasons(series.before) & _reasons(series.after) & set(HEAT)
    return f"{', '.join(sorted(both))} before and after{_heat(series)}" if both else None


def memory_mhz(series: Series) -> float | None:
    """Return the higher of both readings: an idle device may lower its memory clock until work comes."""
    return max(_usable(clock.memory_mhz for clock in clocks_of(series)), default=None)


def standing(series: Series, had_reading: bool) -> tuple[Stale, ...]:
    """Return what holds without being a reason to refuse: S0 no reading, S1 an old one, S6 power cap, S7 settings.

    `had_reading` says that an earlier series had one: then a failure is S1.
    """
    found: list[Stale] = []
    clocks = clocks_of(series)
    instead = "the device's own clock decides" if holder_ghz(series) else "no clock is known: this guard is off"
    errors = [clock.error for clock in clocks if clock.error]
    if errors and had_reading:
        found.append(Stale("S1", f"a reading failed: {errors[0]}", instead))
    elif errors:
        found.append(Stale("S0", f"NVML gives no clock: {errors[0]}", instead))
    elif (age := _age_s(clocks)) > OLD_S:
        found.append(Stale("S1", f"NVML was read {age:.2f} s away from the timed section", instead))
    reasons = _reasons(series.before) | _reasons(series.after)
    moved = dict(_advanced(series))
    if CAP in reasons or CAP in moved:
        spent = f" for {moved[CAP]:.1f} ms of this series" if CAP in moved else ""
        found.append(Stale("S6", f"the clock is held at the power limit{spent}{_power(clocks)}", "steady state, kept"))
    settings = sorted(reasons - set(HARMLESS))
    if settings:
        moves = "; another party moves the clock" if set(settings) & set(OTHER_PARTY) else ""
        found.append(Stale("S7", f"clocks are set by somebody: {', '.join(settings)}{moves}", "recorded, kept"))
    return tuple(found)


def has_reading(series: Series) -> bool:
    """Say whether NVML gave a clock around the series."""
    return any(clock.read_mono is not None and clock.sm_mhz is not None for clock in clocks_of(series))


def broken(series: Series) -> tuple[str, ...]:
    """Return what NVML says is wrong with the device, each once."""
    return tuple(dict.fromkeys(one for clock in clocks_of(series) for one in clock.health))


def _advanced(series: Series) -> list[tuple[str, float]]:
    """Return the throttle counters that moved during the series, in milliseconds; one that is not listed is 0."""
    if series.before is None or series.after is None or series.before.read_mono is None or series.before.error:
        return []
    before = dict(series.before.counters)
    moved = [(name, (now - before.get(name, 0)) / 1e6) for name, now in series.after.counters]
    return [(name, ms) for name, ms in moved if ms > 0.0]


def _reasons(clock: Clock | None) -> set[str]:
    return set(clock.reasons) if clock is not None else set()


def _age_s(clocks: tuple[Clock, ...]) -> float:
    ages = [abs(clock.mono - clock.read_mono) for clock in clocks if clock.read_mono is not None]
    return max((age for age in ages if math.isfinite(age)), default=0.0)


def _heat(series: Series) -> str:
    found = _usable(clock.temperature_c for clock in clocks_of(series))
    return f", at {found[-1]:g} °C" if found else ""


def _power(clocks: tuple[Clock, ...]) -> str:
    limits = _usable(clock.power_limit_w for clock in clocks)
    return f" of {limits[-1]:g} W" if limits else ""


def _usable(values: Iterable[float | None]) -> tuple[float, ...]:
    return tuple(value for value in values if value is not None and math.isfinite(value) and value > 0.0)
