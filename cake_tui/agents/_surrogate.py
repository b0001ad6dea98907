"""A small Bayesian-style probe: what numbers of a structure may bring, from the standings recorded so far.

A Gaussian process over knob vectors: numbers in octaves, switches and words as equal or not. Its kernel is half
additive (each knob by itself: learns from few rows) and half a product (interactions). Rasmussen and Williams,
Gaussian Processes for Machine Learning, chapter 2, equations 2.25 and 2.26. All array work is elementwise: no
BLAS call, so that no thread of a pool is left spinning beside a timed section.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from cake_tui.model.schedule import KnobValue, Schedule

Array = NDArray[np.float64]

OCTAVES_ALONE, OCTAVES_TOGETHER = 1.5, 2.5  # lengths over which a knob's effect is alike
NUGGET = 0.01  # least variance of noise, of the standings' own: what the kernel cannot follow
SCALE_LEAST = 0.05  # standings closer together than this are not stretched further


class Surrogate:
    """The posterior over one structure's standings; built anew each round from at most some tens of rows."""

    def __init__(self, schedules: Sequence[Schedule], standings: Sequence[float], noise: float) -> None:
        """Condition on standings (ln units) measured with `noise` (standard deviation, ln units)."""
        knobs: dict[str, list[str]] = {}
        for schedule in schedules:
            for name, value in schedule.knobs:
                words = knobs.setdefault(name, [])
                if isinstance(value, str):
                    words.append(value)
        self._names = tuple(sorted(knobs))
        self._axes = [_Axis(knobs[name]) for name in self._names]
        self._seen = self.vectors(schedules)
        values = np.asarray(standings, dtype=np.float64)
        self._centre = float(values.mean())
        self.scale = max(SCALE_LEAST, float(values.std()))
        gram = self._kernel(self._seen, self._seen)
        gram[np.diag_indices_from(gram)] += max(NUGGET, (noise / self.scale) ** 2)
        self._inverse = _inverse(gram)
        self._weights: Array = (self._inverse * ((values - self._centre) / self.scale)[None, :]).sum(axis=1)

    def predict(self, vectors: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation (ln units) of the standings at `vectors`."""
        near = self._kernel(vectors, self._seen)
        mean = self._centre + self.scale * (near * self._weights[None, :]).sum(axis=1)
        explained = _forms(near, self._inverse)
        return mean, self.scale * np.sqrt(np.maximum(1e-9, 1.0 - explained))

    def alike(self, vectors: Array, index: int) -> Array:
        """Return the prior correlation of each vector with one of them."""
        correlation: Array = self._kernel(vectors, vectors[index : index + 1])[:, 0]
        return correlation

    def vectors(self, schedules: Sequence[Schedule]) -> Array:
        """Return the schedules as points, one row each; knobs that no known schedule has are left out."""
        rows = [[place[value] for place, value in zip(self._axes, self._values(schedule))] for schedule in schedules]
        return np.array(rows, dtype=np.float64).reshape(len(rows), -1) if self._axes else np.zeros((len(rows), 1))

    def _values(self, schedule: Schedule) -> tuple[KnobValue, ...]:
        # Schedules of one structure have the same knobs in the same order; others take the slow way.
        names, values = zip(*schedule.knobs) if schedule.knobs else ((), ())
        if names == self._names:
            return values
        given = dict(schedule.knobs)
        return tuple(given.get(name, 0) for name in self._names)

    def _kernel(self, left: Array, right: Array) -> Array:
        alone = np.zeros((len(left), len(right)))
        squares = np.zeros_like(alone)
        for here, there in zip(left.T, right.T):
            if len(right) == 1:
                apart = (here - there)[:, None] ** 2
                squares += apart
                alone += np.exp(apart * (-0.5 / OCTAVES_ALONE**2))
                continue
            # A knob has few values: what two of them share is worked out once, then looked up.
            values, codes = np.unique(np.concatenate([here, there]), return_inverse=True)
            apart = (values[:, None] - values[None, :]) ** 2
            pairs = codes[: len(here), None] * len(values) + codes[None, len(here) :]
            squares += apart.take(pairs)
            alone += np.exp(apart * (-0.5 / OCTAVES_ALONE**2)).take(pairs)
        together = np.exp(squares * (-0.5 / OCTAVES_TOGETHER**2))
        kernel: Array = 0.5 / left.shape[1] * alone + 0.5 * together
        return kernel


class _Axis(dict[KnobValue, float]):
    """Where a knob's values lie, in octaves; words get places of their own, two octaves apart."""

    def __init__(self, words: Iterable[str]) -> None:
        super().__init__()
        self._words = sorted(set(words))

    def __missing__(self, value: KnobValue) -> float:
        """Work out where a value lies the first time that it is asked for."""
        found = self[value] = self._place(value)
        return found

    def _place(self, value: KnobValue) -> float:
        if isinstance(value, bool):
            return 2.0 * value
        if isinstance(value, str):
            # A word nobody has tried lies beyond the others.
            return 2.0 * (self._words.index(value) if value in self._words else len(self._words))
        return math.copysign(math.log2(1.0 + abs(value)), value)


def _forms(near: Array, inverse: Array) -> Array:
    """The quadratic forms ``near[i] · inverse · near[i]``, without BLAS."""
    half = np.zeros_like(near)
    for column in range(inverse.shape[0]):
        half += near[:, column : column + 1] * inverse[column][None, :]
    forms: Array = (half * near).sum(axis=1)
    return forms


def _inverse(matrix: Array) -> Array:
    """Invert a symmetric positive definite matrix by Gauss-Jordan sweeps of whole rows."""
    size = matrix.shape[0]
    work = np.concatenate([matrix, np.eye(size)], axis=1)
    for pivot in range(size):
        work[pivot] /= work[pivot, pivot]
        column = work[:, pivot].copy()
        column[pivot] = 0.0
        work -= column[:, None] * work[pivot][None, :]
    inverse: Array = work[:, size:]
    return inverse
