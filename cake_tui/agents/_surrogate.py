"""A small Bayesian-style probe: what numbers of a structure may bring, from the standings recorded so far.

A Gaussian process over knob vectors: numbers in octaves, switches and words as equal or not. Its kernel is half
additive (each knob by itself: learns from few rows) and half a product (interactions). Rasmussen and Williams,
Gaussian Processes for Machine Learning, chapter 2, equations 2.25 and 2.26. All array work is elementwise: no
BLAS call, so that no thread of a pool is left spinning beside a timed section.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

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
        self._axes = _axes(schedules)
        self._seen = self._vectors(schedules)
        values = np.asarray(standings, dtype=np.float64)
        self._centre = float(values.mean())
        self.scale = max(SCALE_LEAST, float(values.std()))
        gram = self._kernel(self._seen, self._seen)
        gram[np.diag_indices_from(gram)] += max(NUGGET, (noise / self.scale) ** 2)
        self._inverse = _inverse(gram)
        self._weights: Array = (self._inverse * ((values - self._centre) / self.scale)[None, :]).sum(axis=1)

    def predict(self, schedules: Sequence[Schedule]) -> tuple[Array, Array]:
        """Return mean and standard deviation (ln units) of the schedules' standings."""
        near = self._kernel(self._vectors(schedules), self._seen)
        mean = self._centre + self.scale * (near * self._weights[None, :]).sum(axis=1)
        explained = _forms(near, self._inverse)
        return mean, self.scale * np.sqrt(np.maximum(1e-9, 1.0 - explained))

    def alike(self, schedules: Sequence[Schedule], one: Schedule) -> Array:
        """Return the prior correlation of each schedule with one."""
        correlation: Array = self._kernel(self._vectors(schedules), self._vectors([one]))[:, 0]
        return correlation

    def _vectors(self, schedules: Sequence[Schedule]) -> Array:
        out = np.zeros((len(schedules), max(1, len(self._axes))), dtype=np.float64)
        for row, schedule in enumerate(schedules):
            for name, value in schedule.knobs:
                axis = self._axes.get(name)
                if axis is not None:
                    out[row, axis[0]] = _place(value, axis[1])
        return out

    def _kernel(self, left: Array, right: Array) -> Array:
        squares = (left[:, None, :] - right[None, :, :]) ** 2
        alone = np.exp(squares * (-0.5 / OCTAVES_ALONE**2)).mean(axis=2)
        together = np.exp(squares.sum(axis=2) * (-0.5 / OCTAVES_TOGETHER**2))
        kernel: Array = 0.5 * alone + 0.5 * together
        return kernel


def _axes(schedules: Sequence[Schedule]) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Give each knob an axis; words get the list of those that occur."""
    words: dict[str, set[str]] = {}
    for schedule in schedules:
        for name, value in schedule.knobs:
            found = words.setdefault(name, set())
            if isinstance(value, str):
                found.add(value)
    return {name: (axis, tuple(sorted(words[name]))) for axis, name in enumerate(sorted(words))}


def _place(value: KnobValue, words: tuple[str, ...]) -> float:
    if isinstance(value, bool):
        return 2.0 * value
    if isinstance(value, str):
        # A word nobody has tried lies beyond the others.
        return 2.0 * (words.index(value) if value in words else len(words))
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
