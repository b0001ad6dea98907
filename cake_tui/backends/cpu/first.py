"""``reference = "first"``: what the user's first setting computes is held as truth, and is labelled so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cake_tui.backends._reference import Referee, Reference
from cake_tui.backends.cpu.memory import Array
from cake_tui.backends.cpu.runtime import Runtime
from cake_tui.backends.cpu.subject import Arm, Inputs, Libraries
from cake_tui.model.jobs import Subject
from cake_tui.model.problem import Problem, Shape


class FirstReferee:
    """Runs the first setting on copies of the inputs. The scale of errors is its output's largest size."""

    exact = False
    written = True
    row_axis = None

    def __init__(self, runtime: Runtime, libraries: Libraries, problem: Problem, truth: Subject) -> None:
        self._runtime, self._libraries = runtime, libraries
        self.problem, self._truth = problem, truth

    def compute(self, inputs: Mapping[str, Any], shape: Shape) -> Reference:
        """Return what it writes, as float64; raises Ended(LaunchFailed) for a shape that its build does not serve."""
        found = run_elsewhere(self._runtime, self._libraries, self.problem, shape, self._truth, inputs)
        values = {name: array.astype(np.float64) for name, array in found.items()}
        sizes = {name: np.max(np.abs(np.nan_to_num(array)), initial=0.0) for name, array in values.items()}
        return Reference(values, {name: np.full(values[name].shape, size) for name, size in sizes.items()})

    def rows(self, inputs: Mapping[str, Any], shape: Shape, rows: Any) -> Reference:
        """Compute all: a kernel cannot be asked for some rows."""
        return self.compute(inputs, shape)


AnyReferee = Referee | FirstReferee


def run_elsewhere(
    runtime: Runtime,
    libraries: Libraries,
    problem: Problem,
    shape: Shape,
    subject: Subject,
    values: Mapping[str, Array],
) -> dict[str, Array]:
    """Run a subject once on a copy of the inputs at other addresses; return what it wrote."""
    inputs = Inputs(runtime, problem, shape, "edge", 64)
    try:
        inputs.fill(values)
        library = libraries.load(subject.binary_sha256)
        arm = Arm(runtime, library, subject, problem, shape, inputs, "guarded", 64)
        try:
            arm.poison(1, {name: values[name] for name in arm.outputs if name in values})
            arm.run()
            return {name: buffer.array.copy() for name, buffer in arm.outputs.items()}
        finally:
            arm.free()
    finally:
        inputs.free()
