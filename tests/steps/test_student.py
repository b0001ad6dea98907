"""Student's t against printed tables and against numeric integration of its density."""

from __future__ import annotations

import math

import pytest

from cake_tui.steps.student import cumulative, upper

# One-sided levels and degrees of freedom as statistical tables print them, three decimals.
TABLE = [
    (0.05, 1, 6.314), (0.05, 2, 2.920), (0.05, 3, 2.353), (0.05, 5, 2.015), (0.05, 10, 1.812), (0.05, 30, 1.697),
    (0.05, 120, 1.658), (0.025, 4, 2.776), (0.025, 30, 2.042), (0.01, 7, 2.998), (0.005, 10, 3.169),
    (0.001, 3, 10.215), (0.001, 7, 4.785), (0.001, 15, 3.733), (0.001, 30, 3.385), (0.001, 120, 3.160),
]  # fmt: skip


@pytest.mark.parametrize(("level", "freedom", "expected"), TABLE)
def test_upper_is_what_tables_print(level: float, freedom: int, expected: float) -> None:
    assert upper(level, freedom) == pytest.approx(expected, abs=6e-4)


@pytest.mark.parametrize("freedom", [1, 2, 3, 6, 47, 96, 191])
@pytest.mark.parametrize("t", [-3.0, -0.4, 0.0, 1.3, 4.2])
def test_cumulative_is_the_integral_of_the_density(freedom: int, t: float) -> None:
    log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    steps = 4000
    width = t / steps
    # Simpson's rule from 0 to t
    total = sum(
        (1 if index in (0, steps) else 4 if index % 2 else 2)
        * math.exp(log_scale - (freedom + 1) / 2 * math.log1p((index * width) ** 2 / freedom))
        for index in range(steps + 1)
    )
    assert cumulative(t, freedom) == pytest.approx(0.5 + total * width / 3, abs=1e-9)


def test_infinite_values_are_certain() -> None:
    assert cumulative(math.inf, 5) == 1.0
    assert cumulative(-math.inf, 5) == 0.0


@pytest.mark.parametrize(("level", "freedom"), [(0.0, 3), (0.6, 3), (-1.0, 3), (float("nan"), 3)])
def test_levels_that_are_none_are_refused(level: float, freedom: int) -> None:
    with pytest.raises(ValueError, match="level"):
        upper(level, freedom)


def test_no_degrees_of_freedom_are_refused() -> None:
    with pytest.raises(ValueError, match="degrees of freedom"):
        cumulative(1.0, 0)
