"""Figures carry their unit, and unknown is never a number."""

from __future__ import annotations

import math

import pytest

from cake_tui import figures


@pytest.mark.parametrize(
    ("value", "text"),
    [(148.1, "148.1 us"), (1520.0, "1.520 ms"), (2.1e6, "2.100 s"), (0.0, "0 us"), (None, "n/a"), (math.nan, "n/a"),
     (math.inf, "n/a"), (999.96, "1000.0 us"), (3e12, "3000000 s")],
)  # fmt: skip
def test_times_choose_their_unit(value: float | None, text: str) -> None:
    assert figures.time(value) == text


def test_throughput_is_work_over_time() -> None:
    assert figures.rate(2 * 512**3, 1520.0) == "177 GFLOP/s"  # 268435456 / 1.52e-3 s
    assert figures.rate(2 * 4096**3, 2500.0) == "55.0 TFLOP/s"
    assert figures.rate(None, 1520.0) == "n/a"
    assert figures.rate(1e9, None) == "n/a"
    assert figures.rate(1e9, 0.0) == "n/a"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.9, "59 s"), (60, "1 m 00 s"),
     (192, "3 m 12 s"), (3600, "1 h"), (86400, "24 h"), (9000, "2 h 30 m"),
     (86400 * 3 + 7200, "3 d 02 h"), (-5, "-5 s"), (None, "n/a"), (math.nan, "n/a")],
)  # fmt: skip
def test_durations_read_at_a_glance(seconds: float | None, text: str) -> None:
    assert figures.duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (59.4, "59 s"), (90.0, "1 m 30 s"), (-7200.0, "-2 h"), (-0.5, "-0.5 s")],
)  # fmt: skip
def test_short_durations_are_exact_where_asked_for(seconds: float, text: str) -> None:
    assert figures.duration(seconds, exact=True) == text


def test_gains_are_percent_of_speed() -> None:
    assert figures.gain(math.log(1.05)) == "+5.0 %"
    assert figures.gain(-math.log(2)) == "-50.0 %"
    assert figures.gain(None) == "n/a"
    assert figures.gain(math.log(24.26)) == "24.3×"
    assert figures.gain(1e9).endswith("×")
