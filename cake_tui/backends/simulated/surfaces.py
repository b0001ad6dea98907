"""Three response surfaces: what a schedule truly takes and how it truly ends; pure functions.

A surface maps (structure, knobs) to a time and an ending. It knows nothing of the cost model. Times are built
from bowls (a knob has a best value), ridges (two knobs have a best product), cliffs (a limit is crossed) and a
fine ripple that leaves no two schedules equal. Every structure and knob has an answer: unknown ones get bowls
derived from a hash of their names, so that structures and kernels of users work as well.

On each surface the best structure loses at moderate numbers to others that were tuned: it wins only once two
or three of its knobs are far from the middle.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from cake_tui.errors import UserError, did_you_mean
from cake_tui.model.schedule import KnobValue, Schedule

Ending = Literal["Measured", "BuildFailed", "LaunchFailed", "Crashed", "TimedOut", "WrongAnswer"]
KNOWN_KNOBS = (
    "threads_x", "threads_y", "thread_m", "thread_n", "block_k", "vector", "unroll", "pad", "shared", "split_k",
    "depth",
)  # fmt: skip
RIPPLE = 0.02  # ln units between the luckiest and the unluckiest of otherwise equal schedules
GENERIC_US = 3500.0  # an unknown structure's best time lies around this


class Noise(msgspec.Struct, frozen=True):
    """Of one sample, as fractions: white noise, slow drift, rare spikes, and a bias for each allocation."""

    white: float
    drift: float
    drift_tau_s: float = 20.0
    spike_share: float = 0.0
    spike: float = 0.0
    placement: float = 0.0


class Numbers:
    """Knobs as positive numbers with a neutral value where the structure lacks the knob or it is no number."""

    def __init__(self, knobs: Mapping[str, KnobValue]) -> None:
        self._knobs = knobs

    def __call__(self, name: str, neutral: float) -> float:
        """Return the knob's value; booleans count as 0 and 1."""
        value = self._knobs.get(name, neutral)
        return float(value) if isinstance(value, (int, float)) else neutral

    @property
    def accumulators(self) -> float:
        """Size of the register block, in the units of its two knobs."""
        return max(1.0, self("thread_m", 1) * self("thread_n", 1))

    @property
    def block(self) -> float:
        """Threads of a block, or micro-tiles of a task."""
        return max(1.0, self("threads_x", 4) * self("threads_y", 4))


class Surface(msgspec.Struct, frozen=True):
    """A named surface: `laws` give ln(time in us) a known structure, `pocket` the ending of a schedule."""

    name: str
    summary: str
    noise: Noise
    laws: dict[str, Callable[[Numbers], float]]
    pocket: Callable[[Schedule, Numbers], Ending]

    def time_us(self, schedule: Schedule) -> float:
        """Return the true time in microseconds, without noise, of any schedule."""
        knobs = dict(schedule.knobs)
        law = self.laws.get(schedule.structure)
        if law is None:
            spread = unit(self.name, schedule.structure)
            log_time = math.log(GENERIC_US) + 1.2 * spread
            strange = list(knobs)
        else:
            log_time = law(Numbers(knobs))
            strange = [name for name in knobs if name not in KNOWN_KNOBS]
        log_time += sum(_hashed_bowl(self.name, schedule.structure, name, knobs[name]) for name in strange)
        return math.exp(log_time + RIPPLE * unit(self.name, schedule.text))

    def ending(self, schedule: Schedule) -> Ending:
        """Return how an evaluation of the schedule truly ends."""
        return self.pocket(schedule, Numbers(dict(schedule.knobs)))


def unit(*words: str) -> float:
    """Return a number in [0, 1) that depends on nothing but the words."""
    digest = hashlib.blake2b("\0".join(words).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2.0**64


def bowl(value: float, best: float, weight: float) -> float:
    """Return ``weight · log2(value/best)²``: doubling or halving the best value costs `weight` (ln units)."""
    return weight * math.log2(max(value, 0.25) / best) ** 2


def cliff(crossed: bool, height: float) -> float:
    """Return `height` (ln units) once the limit is crossed."""
    return height if crossed else 0.0


def lanes(vector: float, weight: float) -> float:
    """Return the cost of vectors narrower than 16 elements: `weight` a halving."""
    return weight * max(0.0, 4.0 - math.log2(max(vector, 1.0)))


def _hashed_bowl(surface: str, structure: str, knob: str, value: KnobValue) -> float:
    """A mild bowl over a knob nobody knows; words and switches get a level each."""
    weight = 0.02 + 0.08 * unit(surface, structure, knob, "weight")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 3.0 * weight * unit(surface, structure, knob, str(value))
    best = 7.0 * unit(surface, structure, knob, "best")
    return weight * min(16.0, (math.log2(1.0 + abs(value)) - best) ** 2)


# --- ridge: packed wins, with a large register block and block_k on a diagonal ridge -------------------


def _ridge_naive(n: Numbers) -> float:
    return math.log(90_000.0) + bowl(n("unroll", 4), 4, 0.03) + lanes(n("vector", 16), 0.12) + bowl(n.block, 16, 0.02)


def _ridge_tiled(n: Numbers) -> float:
    return (
        math.log(2600.0)
        + bowl(n("block_k", 64), 64, 0.04)
        + bowl(n.accumulators, 8, 0.06)
        + lanes(n("vector", 16), 0.10)
        + bowl(n.block, 64, 0.015)
        + bowl(n("unroll", 4), 4, 0.02)
        + cliff(n("shared", 1) == 0, 0.3)
    )


def _ridge_packed(n: Numbers) -> float:
    registers = n.accumulators
    return (
        math.log(1500.0)
        + 0.8 * math.log(registers / 38.0) ** 2
        + cliff(registers > 42, 1.1)
        + bowl(n("block_k", 1024) * n("thread_n", 1), 3072, 0.10)
        + lanes(n("vector", 16), 0.15)
        + cliff(n("pad", 8) == 0 and n("block_k", 1024) % 256 == 0, 0.10)
        + cliff(n("pad", 8) % 4 != 0 and n("vector", 16) >= 4, 0.25)
        + bowl(n.block, 32, 0.012)
        + bowl(n("unroll", 2), 2, 0.02)
        + cliff(n("unroll", 2) * registers > 160, 0.3)
        + bowl(n("depth", 2), 2, 0.02)
    )


def _ridge_split_k(n: Numbers) -> float:
    return (
        math.log(2300.0)
        + 0.25 * math.log(n.accumulators / 16.0) ** 2
        + bowl(n("block_k", 128), 128, 0.03)
        + bowl(n("split_k", 2), 2, 0.08)
        + lanes(n("vector", 16), 0.10)
        + bowl(n("unroll", 4), 4, 0.02)
    )


def _ridge_pocket(schedule: Schedule, n: Numbers) -> Ending:
    if n("unroll", 1) * n.accumulators > 1024:
        return "BuildFailed"
    return _stray_pocket("ridge", schedule, 0.002)


# --- cliffs: split_k wins, between limits that interact, and a share of schedules fail -----------------


def _cliffs_naive(n: Numbers) -> float:
    return math.log(70_000.0) + bowl(n("unroll", 2), 2, 0.05) + bowl(n("vector", 8), 8, 0.05) + bowl(n.block, 8, 0.02)


def _cliffs_tiled(n: Numbers) -> float:
    return (
        math.log(2400.0)
        + bowl(n("block_k", 32), 32, 0.03)
        + bowl(n.accumulators, 16, 0.05)
        + cliff(n.accumulators > 32, 0.5)
        + bowl(n("vector", 8), 8, 0.06)
        + cliff(n("pad", 1) == 0, 0.15)
        + bowl(n.block, 32, 0.02)
    )


def _cliffs_packed(n: Numbers) -> float:
    return (
        math.log(1900.0)
        + bowl(n.accumulators, 16, 0.08)
        + cliff(n.accumulators > 28, 0.7)
        + bowl(n("block_k", 256), 256, 0.05)
        + bowl(n("vector", 8), 8, 0.08)
        + bowl(n("unroll", 4), 4, 0.03)
        + bowl(n.block, 16, 0.015)
    )


def _cliffs_split_k(n: Numbers) -> float:
    parts, chunk = n("split_k", 8), n("block_k", 64)
    return (
        math.log(1100.0)
        + bowl(parts, 8, 0.12)
        + cliff(chunk * parts > 512, 0.6)
        + bowl(parts * n.block, 512, 0.03)
        + cliff(parts * n.block > 1024, 0.5)
        + bowl(n("thread_m", 12), 12, 0.10)
        + bowl(n("thread_n", 1), 1, 0.15)
        + cliff(n.accumulators > 16, 0.5)
        + bowl(n("vector", 4), 4, 0.08)
        + cliff(n("pad", 4) == 0, 0.35)
        + cliff(n("pad", 4) % 4 != 0 and n("vector", 8) >= 8, 0.4)
        + bowl(n("unroll", 4), 4, 0.05)
        + cliff(n("unroll", 4) >= 16, 0.3)
    )


def _cliffs_pocket(schedule: Schedule, n: Numbers) -> Ending:
    if schedule.structure == "naive":
        return "Measured"
    if n("unroll", 1) * n.accumulators >= 512:
        return "BuildFailed"
    if n.block > 1024:
        return "LaunchFailed"
    if n("pad", 0) % 2 == 1 and n("vector", 1) >= 16:
        return "Crashed"
    if n("split_k", 1) >= 16 and n("unroll", 1) >= 8:
        return "WrongAnswer"
    return _stray_pocket("cliffs", schedule, 0.03)


# --- mirage: tiled wins, though it looks worst until three switches are set together -------------------


def _mirage_naive(n: Numbers) -> float:
    return math.log(50_000.0) + bowl(n("unroll", 8), 8, 0.02) + lanes(n("vector", 16), 0.08)


def _mirage_tiled(n: Numbers) -> float:
    missing = (n("vector", 8) < 8) + (n("pad", 8) == 0) + (n("shared", 1) == 0)
    return (
        math.log(1150.0)
        + (0.0, 0.6, 1.0, 1.1)[missing]
        + bowl(n("thread_m", 8), 8, 0.10)
        + bowl(n("thread_n", 4), 4, 0.12)
        + bowl(n("block_k", 32) * n("thread_n", 4), 128, 0.06)
        + cliff(n("thread_m", 8) * n("block_k", 32) > 1024, 0.4)
        + bowl(n("threads_x", 8), 8, 0.02)
        + bowl(n("threads_y", 8), 8, 0.02)
        + bowl(n("unroll", 4), 4, 0.02)
    )


def _mirage_packed(n: Numbers) -> float:
    return (
        math.log(1900.0)
        + bowl(n.accumulators, 12, 0.03)
        + bowl(n("block_k", 256), 256, 0.02)
        + bowl(n("unroll", 4), 4, 0.02)
        + lanes(n("vector", 16), 0.05)
    )


def _mirage_split_k(n: Numbers) -> float:
    return (
        math.log(2400.0)
        + bowl(n("split_k", 2), 2, 0.06)
        + bowl(n.accumulators, 12, 0.03)
        + bowl(n("block_k", 128), 128, 0.02)
    )


def _mirage_pocket(schedule: Schedule, n: Numbers) -> Ending:
    if schedule.structure == "packed" and n.accumulators > 64:
        return "BuildFailed"
    return _stray_pocket("mirage", schedule, 0.005)


def _stray_pocket(surface: str, schedule: Schedule, share: float) -> Ending:
    """Single schedules that fail for no visible reason; the naive structure has none."""
    draw = unit(surface, schedule.text, "ending")
    if schedule.structure == "naive" or draw >= share:
        return "Measured"
    strays: tuple[Ending, ...] = ("BuildFailed", "WrongAnswer", "Crashed", "LaunchFailed", "TimedOut")
    return strays[min(4, int(5 * draw / share))]


SURFACES: dict[str, Surface] = {
    surface.name: surface
    for surface in (
        Surface(
            "ridge",
            "packed wins on a diagonal ridge of large register blocks; quiet",
            Noise(white=0.003, drift=0.004, spike_share=0.005, spike=0.05),
            {"naive": _ridge_naive, "tiled": _ridge_tiled, "packed": _ridge_packed, "split_k": _ridge_split_k},
            _ridge_pocket,
        ),
        Surface(
            "cliffs",
            "split_k wins between limits that interact; one schedule in thirty fails; 5 % noise",
            Noise(white=0.015, drift=0.048, spike_share=0.01, spike=0.20),
            {"naive": _cliffs_naive, "tiled": _cliffs_tiled, "packed": _cliffs_packed, "split_k": _cliffs_split_k},
            _cliffs_pocket,
        ),
        Surface(
            "mirage",
            "tiled wins once three switches are set together; packed looks best at first; drifting",
            Noise(white=0.006, drift=0.095, spike_share=0.01, spike=0.20, placement=0.003),
            {"naive": _mirage_naive, "tiled": _mirage_tiled, "packed": _mirage_packed, "split_k": _mirage_split_k},
            _mirage_pocket,
        ),
    )
}


def surface(name: str) -> Surface:
    """Return a surface by name; raises UserError with the known names."""
    if name not in SURFACES:
        known = ", ".join(SURFACES)
        raise UserError(f'no simulated surface "{name}"{did_you_mean(name, SURFACES)}; known: {known}')
    return SURFACES[name]
