"""Figures as people read them: times, durations, throughput, ratios and gains, the same on the screen and in lines."""

from __future__ import annotations

import math

UNKNOWN = "n/a"


def significant(value: float, digits: int = 3) -> str:
    """A number with so many significant digits and no exponent between 1e-4 and 1e7."""
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if size >= 7 or size < -4:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(0, digits - 1 - size)}f}"


def time(value_us: float | None, digits: int = 4) -> str:
    """``148.1 us``, ``1.520 ms``, ``2.100 s``."""
    if value_us is None or not math.isfinite(value_us):
        return UNKNOWN
    for unit, factor in (("s", 1e6), ("ms", 1e3)):
        if abs(value_us) >= factor:
            return f"{significant(value_us / factor, digits)} {unit}"
    return f"{significant(value_us, digits)} us"


def duration(seconds: float | None, *, exact: bool = False) -> str:
    """``42 s``, ``3 m 12 s``, ``24 h``, ``2 h 05 m``, ``2 d 03 h``; `exact` shows tenths below ten seconds."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    sign, left = ("-", -seconds) if seconds < 0 else ("", seconds)
    if exact and left < 10:
        return f"{sign}{left:.1f} s"
    whole = round(left) if exact else int(left)
    if whole < 60:
        return f"{sign}{whole} s"
    if whole < 3600:
        return f"{sign}{whole // 60} m {whole % 60:02d} s" if whole % 60 or whole < 600 else f"{sign}{whole // 60} m"
    if whole <= 48 * 3600:
        return f"{sign}{whole // 3600} h" + (f" {whole % 3600 // 60:02d} m" if whole % 3600 >= 60 else "")
    return f"{sign}{whole // 86400} d {whole % 86400 // 3600:02d} h"


def throughput(tflops: float | None, digits: int = 3) -> str:
    """``176 GFLOP/s`` from 0.176, ``8.30 TFLOP/s``."""
    if tflops is None or not math.isfinite(tflops):
        return UNKNOWN
    for unit, factor in (("TFLOP/s", 1.0), ("GFLOP/s", 1e-3)):
        if tflops >= factor:
            return f"{significant(tflops / factor, digits)} {unit}"
    return f"{significant(tflops / 1e-6, digits)} MFLOP/s"


def rate(flops: float | None, value_us: float | None, digits: int = 3) -> str:
    """Throughput from work and time; unknown work is n/a."""
    if not flops or not value_us or not math.isfinite(value_us):
        return UNKNOWN
    return throughput(flops / value_us * 1e-6, digits)


def ratio(value: float | None, digits: int = 3) -> str:
    """``118×``, ``1.14×``."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{significant(value, digits)}×"


def percent(fraction: float | None, digits: int = 1, sign: bool = False) -> str:
    """``0.8 %`` from 0.008; ``+4.2 %`` where the sign matters."""
    if fraction is None or not math.isfinite(fraction):
        return UNKNOWN
    return f"{100 * fraction:{'+' if sign else ''}.{digits}f} %"


def gain(log_ratio: float | None) -> str:
    """Speed-up from ln(t_holder / t_candidate): ``+4.2 %``, from twice as fast on ``24.3×``."""
    if log_ratio is None:
        return UNKNOWN
    faster = math.exp(max(-50.0, min(50.0, log_ratio)))
    return ratio(faster) if faster >= 2 else percent(faster - 1, sign=True)


def count(value: int) -> str:
    """``1,234``."""
    return f"{value:,}"


def digest(sha256: str) -> str:
    """A lowered value's hash (of source, options, architecture and launches) to people: ``kernel id 1f3a5c7e9b0d``."""
    return f"kernel id {sha256[:12]}"
