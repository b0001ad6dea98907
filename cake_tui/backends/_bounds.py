"""Compares what a kernel wrote with the reference: bounds of random sets, exactness of whole-number sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from cake_tui.backends._inputs import EXACT_SETS
from cake_tui.backends._reference import U
from cake_tui.model.facts import Agreement
from cake_tui.model.outcome import CheckFailure
from cake_tui.model.problem import Problem

Array = npt.NDArray[Any]
Rule = Literal["random", "bits", "rounded"]
ROUNDED_ULPS = 4.0
# Honest fp32 needs a little above one where a function's argument is rounded first: gelu far below zero, by erfc.
ROUNDED_UNITS = 4.0
SUBNORMAL = 2.0**-140  # below the least normal number of fp32 steps are 2^-149, however small the scale
ROUNDING_UNITS = 2.0**18  # bf16 inputs reach 2^15; beyond this it is no matter of rounding
ROUNDING_SHARE = 0.05  # rounding shows everywhere, a wrong index in places


class Comparison(msgspec.Struct, frozen=True):
    """How far `found` is from the reference; units are u*S; shares are of the bound that is used up most."""

    bad_elements: int
    elements: int
    nans: int
    max_abs_err: float
    rel_err: float
    worst_unit: float
    bound_share: float
    absolute_share: float
    units_share: float
    first_index: tuple[int, ...] = ()
    expected: float | None = None
    found: str | None = None

    @property
    def passed(self) -> bool:
        """No element is beyond its bound; NaN is always beyond."""
        return self.bad_elements == 0


def rule_of(input_set: str, exact: bool, written: bool) -> Rule:
    """Return how a set is judged; a written reference promises nothing about exactness."""
    if input_set not in EXACT_SETS or written:
        return "random"
    return "bits" if exact else "rounded"


def failure_of(result: Comparison, input_set: str, written: bool, passed_sets: Iterable[str]) -> CheckFailure:
    """Name a failed comparison: NaN, not exact, rounded inputs or sums, or simply beyond the bound.

    `written` as in `rule_of`; `passed_sets` are the sets that were compared before, this one included.
    """
    if result.nans:
        return "nan"
    if input_set in EXACT_SETS and not written:
        return "exact"
    exact_passed = bool(set(passed_sets) & set(EXACT_SETS))
    everywhere = result.bad_elements > ROUNDING_SHARE * result.elements
    return "precision" if exact_passed and everywhere and result.worst_unit < ROUNDING_UNITS else "bound"


def describe(result: Comparison) -> str:
    """Say how many elements are wrong and by how much."""
    worst = f"{result.max_abs_err:.3g} = {result.worst_unit:.3g} u*S"
    return f"{result.bad_elements} of {result.elements} elements, worst {worst}"


def compare(found: Array, value: Array, scale: Array, problem: Problem, rule: Rule) -> Comparison:
    """Compare element by element; shapes are equal. NaN where the reference is a number is beyond every bound.

    random: |error| <= tolerance_abs and |error| <= tolerance_units u S + 2^-140. bits: equal numbers (0 equals -0).
    rounded: |error| <= 4 ulp(y) + 4 u S.
    """
    value = np.broadcast_to(np.asarray(value, np.float64), found.shape)
    scale = np.broadcast_to(np.asarray(scale, np.float64), found.shape)
    with np.errstate(all="ignore"):
        wide = found.astype(np.float64)
        error = np.abs(wide - value)
        alike = (wide == value) | (np.isnan(wide) & np.isnan(value))
        error = np.where(alike, 0.0, error)
        units = _largest(error / np.maximum(U * scale, 1e-300))
        if rule == "random":
            absolute, per_unit = (
                error / problem.tolerance_abs,
                error / (problem.tolerance_units * U * scale + SUBNORMAL),
            )
            share = np.maximum(absolute, per_unit)
        elif rule == "rounded":
            single = np.abs(value).astype(np.float32)
            share = error / (ROUNDED_ULPS * np.spacing(single).astype(np.float64) + ROUNDED_UNITS * U * scale)
            absolute = per_unit = share
        else:
            share = absolute = per_unit = np.full(found.shape, np.inf)
        share = np.where(alike, 0.0, share)
    bad = ~(share <= 1.0)  # NaN is bad
    nans = np.isnan(wide) & ~np.isnan(value)
    count = int(np.count_nonzero(bad))
    first: tuple[int, ...] = ()
    if count:
        first = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
    largest_value = _largest(np.abs(value))
    worst = _largest(error)
    return Comparison(
        bad_elements=count, elements=int(found.size), nans=int(np.count_nonzero(nans)), max_abs_err=worst,
        rel_err=worst / largest_value if largest_value else worst, worst_unit=units, bound_share=_largest(share),
        absolute_share=_largest(absolute), units_share=_largest(per_unit), first_index=first,
        expected=float(value[first]) if count else None, found=repr(float(found[first])) if count else None,
    )  # fmt: skip


def _largest(values: Array) -> float:
    """Return the largest number, NaN counted as infinity; 0 for nothing."""
    if values.size == 0:
        return 0.0
    found = float(np.max(values))
    return found if found == found else float("inf")


def agreed(passed: Sequence[Comparison], **known: Any) -> Agreement:
    """Return what a check that passed says: the worst of its comparisons, and what else is `known` of it."""
    return Agreement(
        max_abs_err=max(one.max_abs_err for one in passed),
        rel_err=max(one.rel_err for one in passed),
        worst_unit=max(one.worst_unit for one in passed),
        bound_share=max(one.bound_share for one in passed),
        **known,
    )
