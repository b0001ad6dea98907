"""A machine with drift, noise and spikes for the gate: the model of the measurement notes, 10 ms samples.

ln(time) = true value + drift + white noise + spikes + a bias of the allocation. Drift is an
Ornstein-Uhlenbeck process with a time constant of 20 s; 5 s pass between two candidates.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from cake_tui.model.measure import Pair, Series
from cake_tui.steps.measure import Ask

SAMPLE_S = 0.01
BETWEEN_S = 5.0
TIME_CONSTANT_S = 20.0
HOLDER_US = 1000.0


@dataclass(frozen=True)
class Weather:
    """Standard deviations of ln(time); `spike_share` of the samples take `spike` longer."""

    white: float
    drift: float
    spike_share: float
    spike: float
    placement: float = 0.0


QUIET = Weather(0.003, 0.004, 0.005, 0.05)
FIVE_PERCENT = Weather(0.015, 0.048, 0.01, 0.20)
TEN_PERCENT = Weather(0.03, 0.095, 0.02, 0.30)
PLACEMENT = Weather(0.003, 0.004, 0.005, 0.05, placement=0.003)


class NoisyMachine:
    """Times a holder and a candidate whose true ln(t_holder / t_candidate) is `gain`."""

    def __init__(self, weather: Weather, seed: int) -> None:
        self.weather = weather
        self.gain = 0.0
        self.samples = 0
        self._random = np.random.default_rng(seed)
        self._normal = self._stream(lambda: self._random.standard_normal(50_000))
        self._uniform = self._stream(lambda: self._random.random(50_000))
        self._drift = weather.drift * next(self._normal)
        self._keep = math.exp(-SAMPLE_S / TIME_CONSTANT_S)
        self._kick = weather.drift * math.sqrt(1.0 - self._keep**2)
        self._spike = math.log1p(weather.spike)

    @staticmethod
    def _stream(draw: Callable[[], np.ndarray]) -> Iterator[float]:
        while True:
            yield from draw().tolist()

    def uniform(self) -> float:
        """A number in [0, 1) from the machine's own stream."""
        return next(self._uniform)

    def wait(self, seconds: float = BETWEEN_S) -> None:
        """Let time pass: the drift moves on."""
        keep = math.exp(-seconds / TIME_CONSTANT_S)
        kick = self.weather.drift * math.sqrt(1.0 - keep * keep)
        self._drift = keep * self._drift + kick * next(self._normal)

    def sample(self) -> float:
        """One sample's disturbance, ln; 10 ms pass."""
        self.samples += 1
        self._drift = self._keep * self._drift + self._kick * next(self._normal)
        spike = self._spike if next(self._uniform) < self.weather.spike_share else 0.0
        return self._drift + self.weather.white * next(self._normal) + spike

    def take(self, ask: Ask) -> Series:
        """Time the pairs in ABBA order on one allocation."""
        self.wait(ask.pause_s)
        bias = self.weather.placement
        holder_bias, candidate_bias = (bias * next(self._normal), bias * next(self._normal)) if bias else (0.0, 0.0)
        pairs = []
        for index in range(ask.pairs):
            first, second = self.sample(), self.sample()
            holder, candidate = (first, second) if index % 2 == 0 else (second, first)
            pairs.append(
                Pair(
                    HOLDER_US * math.exp(holder + holder_bias),
                    HOLDER_US * math.exp(candidate + candidate_bias - self.gain),
                    index % 2 == 0,
                )
            )
        return Series(tuple(pairs))

    def pair_noise(self) -> float:
        """s from sixteen self-pairs, as the session calibrates it: robust standard deviation of ln ratios."""
        kept, self.gain = self.gain, 0.0
        values = [
            math.log(pair.holder_us / pair.candidate_us)
            for _ in range(4)
            for pair in self.take(Ask(4, "calibrate")).pairs
        ]
        self.gain = kept
        middle = statistics.median(values)
        return 1.4826 * statistics.median(abs(value - middle) for value in values)
