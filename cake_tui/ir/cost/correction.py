"""The correction: what this device's measurements teach about the terms, by recursive least squares in log space.

ln(measured / roofline) is taken as an offset of the structure plus a weighted sum of the terms, with Gaussian priors
on all weights (ridge regression), updated one measurement at a time. What the sum leaves is smoothed over the
nearest measurements of the same structure (Nadaraya and Watson's kernel average), shrunk where few are near.
Everything is plain arithmetic in a fixed order: the same rows give the same numbers.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

import msgspec

from cake_tui.ir.cost.estimate import CostRow, Estimate

PRIOR_ERROR = 0.5  # before anything is measured: a factor of 1.6 either way
PRIOR_WEIGHT = 1.0  # the prior counts as so many measurements
NOISE = 0.08  # ln units that the terms cannot explain
OFFSET_PRIOR = 1.5  # standard deviations of the weights' priors
TERM_PRIOR = 0.6
REACH = 0.35  # distance in terms at which a neighbour's residual counts exp(-1/2)
SHRINK = 0.5  # weight of "no residual" beside the neighbours'
RECENT = 40  # one-step-ahead errors that the expected error is made of


class Correction:
    """Learns from measurements one by one; `apply` puts what was learnt into an estimate (under 2 ms)."""

    def __init__(self) -> None:
        self._index: dict[str, int] = {}
        self._weights: list[float] = []
        self._covariance: list[list[float]] = []
        # Terms and ln(measured / roofline) by structure, and what the sum leaves of each until it learns again.
        self._rows: dict[str, list[tuple[dict[str, float], float]]] = {}
        self._left: dict[tuple[str, int], float] = {}
        self._errors: list[float] = []

    @classmethod
    def of(cls, rows: Iterable[CostRow]) -> Correction:
        """Learn from rows in their order."""
        made = cls()
        for row in rows:
            made.learn(row)
        return made

    @property
    def error(self) -> float:
        """The expected error of ln(measured / predicted), from the last one-step-ahead errors and the prior.

        It is their median size times 1.4826 (the standard deviation of a normal distribution with that median): a
        few candidates that surprise do not make the model distrust itself for all others.
        """
        recent = sorted(abs(error) for error in self._errors[-RECENT:])
        median = 1.4826 * statistics.median(recent) if recent else 0.0
        return math.sqrt((PRIOR_WEIGHT * PRIOR_ERROR**2 + len(recent) * median**2) / (PRIOR_WEIGHT + len(recent)))

    def learn(self, row: CostRow) -> None:
        """Take one measurement in; rows without a positive finite time or roofline are passed over."""
        usable = row.measured_us > 0 and row.roofline_us > 0
        if not (usable and math.isfinite(row.measured_us) and math.isfinite(row.roofline_us)):
            return
        target = math.log(row.measured_us / row.roofline_us)
        terms = dict(row.terms)
        linear, local = self._linear(row.structure, terms), self._local(row.structure, terms)
        if self._rows:
            self._errors.append(target - linear - local)
        self._update(row.structure, terms, target)
        self._rows.setdefault(row.structure, []).append((terms, target))
        self._left.clear()

    def apply(self, estimate: Estimate) -> Estimate:
        """Return the estimate with the learnt factor in its prediction and the model's own error beside it."""
        if estimate.abstains is not None:
            return estimate
        terms = dict(estimate.terms)
        shift = self._linear(estimate.structure, terms) + self._local(estimate.structure, terms)
        return msgspec.structs.replace(
            estimate,
            predicted_us=estimate.roofline_us * math.exp(max(-20.0, min(20.0, shift))),
            error=self.error,
        )

    # -- the linear part ----------------------------------------------------------------------------------------

    def _linear(self, structure: str, terms: dict[str, float]) -> float:
        total = 0.0
        for name, value in self._features(structure, terms):
            at = self._index.get(name)
            if at is not None:
                total += self._weights[at] * value
        return total

    def _features(self, structure: str, terms: dict[str, float]) -> list[tuple[str, float]]:
        return [("=", 1.0), (f"={structure}", 1.0), *terms.items()]

    def _update(self, structure: str, terms: dict[str, float], target: float) -> None:
        features = self._features(structure, terms)
        for name, _ in features:
            self._admit(name)
        active = [(self._index[name], value) for name, value in features if value]
        size = len(self._weights)
        spread = [0.0] * size  # covariance times features
        for at, value in active:
            row = self._covariance[at]
            for column in range(size):
                spread[column] += row[column] * value
        scale = NOISE**2 + sum(spread[at] * value for at, value in active)
        miss = (target - sum(self._weights[at] * value for at, value in active)) / scale
        for at in range(size):
            self._weights[at] += spread[at] * miss
            share = spread[at] / scale
            if share:
                row = self._covariance[at]
                for column in range(size):
                    row[column] -= share * spread[column]

    def _admit(self, name: str) -> None:
        if name in self._index:
            return
        self._index[name] = len(self._weights)
        prior = OFFSET_PRIOR if name.startswith("=") else TERM_PRIOR
        for row in self._covariance:
            row.append(0.0)
        self._weights.append(0.0)
        self._covariance.append([0.0] * len(self._weights))
        self._covariance[-1][-1] = prior**2

    # -- the neighbours -----------------------------------------------------------------------------------------

    def _local(self, structure: str, terms: dict[str, float]) -> float:
        """The average of what the sum leaves at the nearest measurements, weighted by distance in terms."""
        total, weight = 0.0, SHRINK
        for at, (theirs, target) in enumerate(self._rows.get(structure, ())):
            distance = 0.0
            for name, value in terms.items():
                step = (value - theirs.get(name, 0.0)) / REACH
                distance += step * step
                if distance > 12.0:
                    break
            else:
                near = math.exp(-0.5 * distance)
                left = self._left.get((structure, at))
                if left is None:
                    left = self._left[structure, at] = target - self._linear(structure, theirs)
                total += near * left
                weight += near
        return total / weight
