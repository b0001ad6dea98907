"""Judges lowered CUDA kernels on the CPU: they run in the emulator, and the product's own bounds judge the result."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from cake_tui.backends._bounds import compare, rule_of
from cake_tui.backends._inputs import DTYPES, make_inputs
from cake_tui.backends._reference import Referee, Reference
from cake_tui.ir.families import dimensions, outputs_of
from cake_tui.model.lowered import Lowered
from cake_tui.model.problem import Problem, Shape
from tests.emulator import Array, Fault, emulate


def judge(lowered: Lowered, problem: Problem, input_set: str = "default", seed: int = 1) -> Fault | None:
    """Run every planned shape and compare with the reference; return the first fault, or None where all is right."""
    for plan in lowered.plans:
        inputs = make_inputs(problem, plan.shape, input_set, seed)
        found = emulate(lowered, plan.shape, inputs, empty_outputs(problem, plan.shape), seed)
        if isinstance(found, Fault):
            return Fault(found.kind, f"{plan.shape.text}: {found.where}")
        wrong = differing(found, problem, plan.shape, inputs, input_set)
        if wrong:
            return Fault("wrong answer", f"{plan.shape.text}: {wrong}")
    return None


def empty_outputs(problem: Problem, shape: Shape) -> dict[str, Array]:
    """Return an array for each buffer that a kernel writes; only shape and type count."""
    return {spec.name: np.empty(dimensions(spec, shape), DTYPES[spec.dtype]) for spec in outputs_of(problem)}


def differing(
    found: Mapping[str, Array], problem: Problem, shape: Shape, inputs: Mapping[str, Array], input_set: str
) -> str:
    """Say in one line what is beyond the bounds of the product's check; an empty string for nothing."""
    referee = Referee(problem, np, _erf)
    reference: Reference = referee.compute(inputs, shape)
    rule = rule_of(input_set, referee.exact, referee.written)
    for spec in outputs_of(problem):
        value, scale = reference.values[spec.name], reference.scales[spec.name]
        verdict = compare(found[spec.name], value, scale, problem, rule)
        if not verdict.passed:
            return (
                f"{verdict.bad_elements} of {verdict.elements} elements of {spec.name}, "
                f"at {verdict.first_index} {verdict.found} for {verdict.expected}"
            )
    return ""


def _erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=[np.float64])(x)
