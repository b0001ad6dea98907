"""One input element that changes from launch to launch, so that a launch cannot be answered from an earlier one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from cake_tui.ir.families import inputs_of
from cake_tui.model.problem import Problem

Array = npt.NDArray[Any]

VALUES = 7
NAN_BITS = 0x7FC00000


class Element(msgspec.Struct, frozen=True):
    """Element `index` (flat) of input `name`, and the 4-byte patterns that it takes in turn."""

    name: str
    index: int
    bits: tuple[int, ...]

    def in_turn(self, last: int = 0) -> tuple[int, ...]:
        """Return the patterns in an order after which a batch of any length ends with pattern `last`."""
        turn = last % len(self.bits)
        return self.bits[turn:] + self.bits[:turn]

    def after_batch(self, values: Mapping[str, Array], last: int = 0) -> dict[str, Array]:
        """Return the inputs as a batch leaves them."""
        return self.set_to(self.bits[last % len(self.bits)], values)

    def set_to(self, bits: int, values: Mapping[str, Array]) -> dict[str, Array]:
        """Return the inputs with the element's pattern replaced."""
        changed = dict(values)
        changed[self.name] = values[self.name].copy()
        changed[self.name].reshape(-1).view(np.uint32)[self.index] = bits
        return changed

    def row(self, values: Mapping[str, Array]) -> int:
        """Return its position along the buffer's first axis."""
        return self.index // max(math.prod(values[self.name].shape[1:]), 1)


def pick(problem: Problem, values: Mapping[str, Array], random: np.random.Generator) -> Element | None:
    """Choose an element of the first single-precision input and values of its usual size; None without one."""
    for spec in inputs_of(problem):
        array = values[spec.name]
        if spec.dtype == "f32" and spec.role == "in" and array.size:
            size = float(np.std(array)) or 1.0
            numbers = (random.uniform(1.0, 2.0, VALUES) * size).astype(np.float32)
            return Element(spec.name, int(random.integers(array.size)), tuple(numbers.view(np.uint32).tolist()))
    return None
