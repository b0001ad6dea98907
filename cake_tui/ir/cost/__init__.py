"""The cost model: predicted time of a program, corrected by what this device's measurements taught."""

from __future__ import annotations

import random
from collections.abc import Sequence

from cake_tui.ir.cost.correction import Correction
from cake_tui.ir.cost.estimate import CostRow, Estimate
from cake_tui.ir.opaque import Opaque
from cake_tui.ir.program import Program
from cake_tui.model.device import Device
from cake_tui.model.problem import Shape

__all__ = ["Correction", "CostRow", "Estimate", "estimate", "screen"]


def estimate(program: Program | Opaque, device: Device, shapes: Sequence[Shape]) -> Estimate | None:
    """Predict one run of the ranked shapes; None for an opaque program."""
    return None


def screen(
    estimates: Sequence[Estimate | None], n: int, audit: float, rng: random.Random
) -> tuple[list[int], list[int], list[int]]:
    """Return the positions kept, those audited and those dropped."""
    return list(range(len(estimates)))[:n], [], list(range(len(estimates)))[n:]
