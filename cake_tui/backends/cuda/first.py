"""``reference = "first"``: what the user's first setting computes is held as truth, and is labelled so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cupy

from cake_tui.backends._inputs import DTYPES
from cake_tui.backends._reference import Referee, Reference
from cake_tui.backends.cuda.memory import Copy
from cake_tui.backends.cuda.subject import Arm, Gpu, Inputs
from cake_tui.model.jobs import Subject
from cake_tui.model.problem import Problem, Shape


class FirstReferee:
    """Runs the first setting on copies of the inputs. The scale of errors is its output's largest size."""

    exact = False
    written = True
    row_axis = None

    def __init__(self, gpu: Gpu, problem: Problem, truth: Subject, run_limit_s: float) -> None:
        self._gpu, self.problem, self._truth, self._run_limit_s = gpu, problem, truth, run_limit_s

    def compute(self, inputs: Mapping[str, Any], shape: Shape) -> Reference:
        """Return what it writes, as float64; raises Ended(LaunchFailed) for a shape that its build does not serve."""
        found = run_elsewhere(self._gpu, self.problem, shape, self._truth, inputs, self._run_limit_s)
        values = {}
        for name, copy in found.items():
            raw = self._gpu.download(copy.address, copy.bytes)
            array = cupy.frombuffer(raw, dtype=DTYPES[copy.dtype])[: copy.elements].reshape(copy.shape)
            values[name] = array.astype(cupy.float64)
            copy.free()
        scales = {name: cupy.abs(cupy.nan_to_num(array)).max() if array.size else 0.0 for name, array in values.items()}
        return Reference(values, scales)

    def rows(self, inputs: Mapping[str, Any], shape: Shape, rows: Any) -> Reference:
        """Compute all: a kernel cannot be asked for some rows."""
        return self.compute(inputs, shape)


AnyReferee = Referee | FirstReferee


def run_elsewhere(
    gpu: Gpu, problem: Problem, shape: Shape, subject: Subject, arrays: Mapping[str, Any], run_limit_s: float
) -> dict[str, Copy]:
    """Run a subject once on a copy of the inputs at other addresses; return what it wrote, to be freed."""
    masters = {name: int(array.data.ptr) for name, array in arrays.items()}
    inputs = Inputs(gpu, problem, shape, masters)
    try:
        arm = Arm(gpu, subject, problem, shape, inputs)
        try:
            arm.poison(1)
            arm.put()
            gpu.finish(run_limit_s)
            return {name: Copy(gpu.memory, buffer) for name, buffer in arm.outputs.items()}
        finally:
            arm.free()
    finally:
        inputs.free()
