"""A goal: what the person asks the run to reach."""

from __future__ import annotations

import math
import re

import msgspec

_TEXT = re.compile(r"^\s*(?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*(?P<unit>\S.*?)\s*$")
UNITS = ("us", "tflops", "baseline", "peer")  # or the name of one peer


class Goal(msgspec.Struct, frozen=True):
    """A ratio to a peer or the baseline, a time or a throughput."""

    number: float
    unit: str  # one of UNITS, or the name of one peer

    @classmethod
    def read(cls, text: str) -> Goal | None:
        """Read ``1.1 peer``, ``1.2 numpy``, ``100 baseline``, ``450 us`` or ``0.4 tflops``; None where it is none."""
        match = _TEXT.match(text)
        if match is None or not 0 < float(match["number"]) < math.inf:
            return None
        unit = match["unit"].lower().replace("tflop/s", "tflops").removeprefix("x ")
        return cls(float(match["number"]), unit)

    @property
    def text(self) -> str:
        """As it is typed."""
        return f"{self.number:g} {self.unit}"
