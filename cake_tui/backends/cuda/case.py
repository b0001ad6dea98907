"""One shape's buffers for a check: runs that look at guards, inputs and what was left unwritten."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

import cupy
import msgspec
import numpy as np

from cake_tui.backends._bounds import Comparison
from cake_tui.backends._inputs import DTYPES
from cake_tui.backends.cuda.memory import DTYPE_BYTES, POISONS, WORD_BYTES, Buffer, Copy
from cake_tui.backends.cuda.subject import Arm, Gpu, Inputs
from cake_tui.backends.cuda.vault import Values, Vault
from cake_tui.errors import Ended
from cake_tui.ir.families import inputs_of
from cake_tui.model.jobs import Check
from cake_tui.model.outcome import CheckFailure
from cake_tui.model.problem import Problem, Shape

Outputs = dict[str, Copy]


class Judge(Protocol):
    """Who runs a case, and says how it ends."""

    gpu: Gpu
    vault: Vault
    job: Check
    problem: Problem

    def wrong(self, failure: CheckFailure, reason: str, result: Comparison | None = None) -> Ended:
        """Return the ending for a probe that failed."""

    def differing(self, name: str, first: Copy, second: Copy, third: Copy) -> None:
        """Outputs on two poisons differ: raise Ended where that is not allowed."""


class Case:
    """One shape's buffers at one alignment, and runs over them; copies of outputs live as long as it does."""

    def __init__(self, checker: Judge, shape: Shape, align: int) -> None:
        self.checker = checker
        self.gpu = checker.gpu
        self.last_us = 1.0
        self._copies: list[Copy] = []
        subject, problem = checker.job.subject, checker.problem
        values = checker.vault.inputs(shape, "default", checker.job.seed)
        self.inputs = Inputs(self.gpu, problem, shape, values.masters, align=align)
        try:
            self.arm = Arm(self.gpu, subject, problem, shape, self.inputs, align=align)
        except BaseException:
            self.inputs.free()
            raise
        self.inouts = [spec.name for spec in inputs_of(problem) if spec.role == "inout"]

    def __enter__(self) -> Case:
        return self

    def __exit__(self, kind: Any, error: Any, _: object) -> None:
        if kind is not None and not issubclass(kind, Ended):
            return  # the process is of no use any more: it must not wait for the device again
        for one in self._copies:
            one.free()
        self.arm.free()
        self.inputs.free()

    def fill(self, values: Values) -> None:
        """Put the values in."""
        self._fill(values.arrays)

    def run_once(self, values: Values) -> Outputs:
        """Run on the first poison; raises Ended for guards, inputs and elements that were not written."""
        return self.run_arrays(values.arrays)

    def run_arrays(self, arrays: Mapping[str, Any]) -> Outputs:
        """The same with arrays on the device."""
        self._fill(arrays)
        return self._written(self._run(arrays, 0), None)

    def run_twice(self, values: Values) -> Outputs:
        """Run on both poisons; raises Ended where the outputs differ, too."""
        arrays = values.arrays
        self._fill(arrays)
        first, second = self._run(arrays, 0), self._run(arrays, 1)
        self._written(first, second)
        for name, one in first.items():
            if not one.same_as(second[name]):
                self.checker.differing(name, one, second[name], self._run(arrays, 0)[name])
        return first

    def outputs(self) -> Outputs:
        """Copy what the outputs hold."""
        found = {name: Copy(self.gpu.memory, buffer) for name, buffer in self.arm.outputs.items()}
        self._copies += found.values()
        return found

    def look_around(self, arrays: Mapping[str, Any]) -> None:
        """Raise Ended where guards or inputs were written."""
        for _, buffer in self.arm.named():
            broken = buffer.broken_guard()
            if broken:
                raise self.checker.wrong("guard", broken)
        for name, buffer in self.inputs.buffers.items():
            count = self.gpu.probes.differing(buffer.address, int(arrays[name].data.ptr), buffer.bytes).count
            if count:
                raise self.checker.wrong("inputs_changed", f"{count} bytes of {name} were changed")

    def _fill(self, arrays: Mapping[str, Any]) -> None:
        self.inputs.masters = {name: int(array.data.ptr) for name, array in arrays.items()}
        self.inputs.refill()

    def _run(self, arrays: Mapping[str, Any], poison: int) -> Outputs:
        self.arm.poison(poison)
        driver, (first, last) = self.gpu.driver, self.gpu.events(2)
        driver.record(first, self.gpu.stream)
        self.arm.put()
        driver.record(last, self.gpu.stream)
        self.gpu.finish(self.checker.job.run_limit_s)
        self.last_us = driver.elapsed_us(first, last)
        found = self.outputs()  # at once: what comes later does not count
        self.look_around(arrays)
        return found

    def _written(self, first: Outputs, second: Outputs | None) -> Outputs:
        """Raise Ended where elements still hold the poison (both poisons, where both were run)."""
        for name, one in first.items():
            size = DTYPE_BYTES[one.dtype]
            if name in self.inouts or size % WORD_BYTES or not one.elements:
                continue
            other = second[name].address if second is not None else None
            count, place = self.gpu.probes.left_over(
                one.address, other, one.elements, size // WORD_BYTES, POISONS
            )  # fmt: skip
            if count:
                index = [int(i) for i in np.unravel_index(place, one.shape)]
                some = f"{count} of {one.elements} elements"
                lost = Comparison(
                    count, one.elements, count, math.inf, math.inf, math.inf, math.inf, math.inf, math.inf,
                    tuple(index), None, "nan",
                )  # fmt: skip
                raise self.checker.wrong("unwritten", f"{some} of {name} were not written, {index} first", lost)
        return first


def compare_on_device(
    gpu: Gpu, problem: Problem, found: Copy | Buffer, value: Any, scale: Any, rule: Any, rows: list[int] | None = None
) -> Comparison:
    """Compare a buffer with dense float64 value and scale, of `rows` alone where given.

    The first bad element is fetched.
    """
    kept = cupy.asarray(rows, dtype=cupy.int64) if rows is not None else None
    where = (int(kept.data.ptr), int(kept.size)) if kept is not None else None
    result = gpu.probes.compare(
        found.address, found.dtype, found.shape, int(value.data.ptr), int(scale.data.ptr), problem, rule, where
    )  # fmt: skip
    if result.passed:
        return result
    place = int(np.ravel_multi_index(result.first_index, found.shape)) if found.shape else 0
    size = DTYPE_BYTES[found.dtype]
    raw = gpu.download(found.address + size * place, size)
    at = result.first_index
    if rows is not None:
        at = (rows.index(at[0]), *at[1:])
    return msgspec.structs.replace(
        result, expected=float(value[at]), found=repr(float(np.frombuffer(raw, DTYPES[found.dtype])[0]))
    )  # fmt: skip
