"""Proves before a session that the check of its problem tells right from wrong: numpy variants, no kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from cake_tui.backends._bounds import Comparison, compare, rule_of
from cake_tui.backends._inputs import make_inputs, sets_of
from cake_tui.backends._reference import Referee, Reference
from cake_tui.errors import UserError
from cake_tui.ir.families import axes, contracted_axes, contracted_length, operands, outputs_of
from cake_tui.model.jobs import SelfTested
from cake_tui.model.problem import Problem, Shape

Array = npt.NDArray[Any]
Inputs = Mapping[str, Array]
Case = tuple[str, float, str, str]

MOST_ROWS = 128  # of each axis that is not summed (its square of a lone one): the figures do not hang on them
LONG_SUM = 4096  # beyond it still fewer, or term after term takes too long
BLOCK = 32
SEED = 20_211


class _Set(msgspec.Struct, frozen=True):
    name: str
    inputs: Inputs
    reference: Reference


def self_test(problem: Problem, referee: Referee) -> SelfTested:
    """Hold wrong and honest answers against the check and report each; raises UserError for an unusable problem."""
    shape = _small(problem, problem.shapes[-1])
    sets = []
    for name in sets_of(problem):
        inputs = make_inputs(problem, shape, name, SEED)
        sets.append(_Set(name, inputs, referee.compute(inputs, shape)))
        if name == "default":
            _refuse_no_numbers(problem, sets[-1].reference)
    judge = _Judge(problem, referee)
    cases = [*_wrong_cases(problem, referee, judge, sets), *_honest_cases(problem, referee, judge, sets)]
    output = outputs_of(problem)[0].name
    default = next(one for one in sets if one.name == "default")
    values = np.asarray(default.reference.values[output])
    return SelfTested(
        passed=all(expected == happened for _, _, expected, happened in cases),
        cases=tuple(cases),
        max_abs_output=float(np.max(np.abs(values), initial=0.0)),
        nonzero_share=float(np.count_nonzero(values) / values.size) if values.size else 0.0,
        tolerance=problem.tolerance_abs,
    )


def _refuse_no_numbers(problem: Problem, reference: Reference) -> None:
    for name, values in (*reference.values.items(), *reference.scales.items()):
        found = np.asarray(values, np.float64)
        wrong = int(found.size - np.count_nonzero(np.isfinite(found)))
        if wrong:
            raise UserError(
                f"kernel {problem.kernel}: its reference makes {wrong} of {found.size} elements of {name} infinite or "
                f"no number; change value, fill or scale in kernel.toml"
            )


class _Judge:
    """Compares an answer with a set's reference by the set's rule."""

    def __init__(self, problem: Problem, referee: Referee) -> None:
        self.problem, self.referee = problem, referee
        self.output = outputs_of(problem)[0].name

    def compare(self, found: Array, one: _Set) -> Comparison:
        """Compare the first output."""
        rule = rule_of(one.name, self.referee.exact, self.referee.written)
        value, scale = one.reference.values[self.output], one.reference.scales[self.output]
        return compare(np.asarray(found, np.float32), value, scale, self.problem, rule)


def _wrong_cases(problem: Problem, referee: Referee, judge: _Judge, sets: list[_Set]) -> list[Case]:
    """Zeros and a constant must be beyond each bound of the problem's own inputs by itself; the rest beyond one."""
    default = next(one for one in sets if one.name == "default")
    value = np.asarray(default.reference.values[judge.output], np.float64)
    cases = []
    constant = float(np.median(value)) if value.size else 0.0
    known = {"zeros": np.zeros_like(value)}
    if value.size != 1:  # one number is a constant
        known["a constant"] = np.full_like(value, constant)
    for name, answer in known.items():
        result = judge.compare(answer, default)
        for bound, share in (("tolerance_abs", result.absolute_share), ("tolerance_units", result.units_share)):
            cases.append(_refused(f"{name}, by {bound} alone", share))
    if operands(problem) is None or problem.reference is not None:
        return cases
    for name, answer_of in _wrong_contractions(problem, referee).items():
        shares = []
        for one in sets:
            found = answer_of(one.inputs)
            if found is not None:
                shares.append(judge.compare(found, one).bound_share)
        if shares:
            cases.append(_refused(name, max(shares)))
    return cases


def _wrong_contractions(problem: Problem, referee: Referee) -> dict[str, Callable[[Inputs], Array | None]]:
    """Name wrong sums; one that cannot differ from the right one for these sizes gives None."""
    factors = operands(problem)
    assert factors is not None
    first = factors[0]

    def dropped(inputs: Inputs) -> Array | None:
        position = axes(first).index(contracted_axes(problem)[0])
        changed = np.array(inputs[first.name])
        changed[(slice(None),) * position + (-1,)] = 0
        return np.asarray(referee.in_single({**inputs, first.name: changed}))

    def swapped(inputs: Inputs) -> Array | None:
        array = inputs[first.name]
        if array.ndim != 2 or 1 in array.shape:
            return None
        # Rows read as columns: the same memory with its axes the other way round.
        changed = np.ascontiguousarray(array.reshape(array.shape[::-1]).T)
        return np.asarray(referee.in_single({**inputs, first.name: changed}))

    def rounded(inputs: Inputs) -> Array | None:
        """Round both factors to 10 bits of fraction, to nearest even, as TF32 holds them."""
        changed = dict(inputs)
        for spec in factors:
            bits = np.ascontiguousarray(inputs[spec.name], np.float32).view(np.uint32)
            even = (bits >> np.uint32(13)) & np.uint32(1)
            changed[spec.name] = ((bits + np.uint32(0xFFF) + even) & np.uint32(0xFFFFE000)).view(np.float32)
        if all(np.array_equal(changed[spec.name], inputs[spec.name]) for spec in factors):
            return None
        return np.asarray(referee.in_single(changed))

    return {"one term of the sum left out": dropped, "axes swapped": swapped, "inputs rounded to TF32": rounded}


def _honest_cases(problem: Problem, referee: Referee, judge: _Judge, sets: list[_Set]) -> list[Case]:
    """Honest fp32 in several orders must be within every set's bound."""
    orders: dict[str, Callable[[Inputs], Array]] = {"fp32 by the library": lambda inputs: referee.in_single(inputs)}
    if problem.family == "elementwise" and problem.reference is None:
        # Libraries have better functions than the ones that expressions are evaluated with here.
        orders = {"the value, rounded to fp32": lambda inputs: referee.in_single(_wide(inputs))}
    if operands(problem) and problem.reference is None and _is_plain(problem):
        orders["fp32, one term after the other"] = lambda inputs: _sum(problem, referee, inputs, 1, False)
        orders["fp32, from the last term"] = lambda inputs: _sum(problem, referee, inputs, 1, True)
        orders["fp32 in blocks"] = lambda inputs: _sum(problem, referee, inputs, BLOCK, False)
    cases = []
    for name, answer_of in orders.items():
        share = max(judge.compare(answer_of(one.inputs), one).bound_share for one in sets)
        cases.append((name, share, "accepted", "accepted" if share <= 1.0 else "refused"))
    return cases


def _wide(inputs: Inputs) -> dict[str, Array]:
    return {name: np.asarray(array, np.float64) for name, array in inputs.items()}


def _is_plain(problem: Problem) -> bool:
    """Say whether the contraction is a product of two matrices as they lie in memory."""
    factors = operands(problem)
    if factors is None:
        return False
    left, right = axes(factors[0]), axes(factors[1])
    return len(left) == len(right) == 2 and left[1:] == right[:1] == contracted_axes(problem)


def _sum(problem: Problem, referee: Referee, inputs: Inputs, block: int, backward: bool) -> Array:
    """Add products in fp32, term by term or in blocks of terms summed by themselves first."""
    factors = operands(problem)
    assert factors is not None
    a, b = (np.asarray(inputs[spec.name], np.float32) for spec in factors)
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    starts = range(0, a.shape[1], block)
    for start in reversed(starts) if backward else starts:
        if block == 1:
            total += a[:, start, None] * b[start]
        else:
            total += a[:, start : start + block] @ b[start : start + block]
    return np.asarray(referee.value_of(total, inputs))


def _small(problem: Problem, shape: Shape) -> Shape:
    """Cut the sizes that are not summed over; the length of the sums stays."""
    if problem.reference is not None or contracted_length(problem, shape) < 1:
        return shape
    most = MOST_ROWS if contracted_length(problem, shape) <= LONG_SUM else MOST_ROWS // 4
    summed = {name.upper() for name in contracted_axes(problem)} | set(contracted_axes(problem))
    free = [name for name, _ in shape.sizes if name not in summed]
    most = most if summed or len(free) > 1 else most * most
    return Shape(tuple((name, min(size, most) if name in free else size) for name, size in shape.sizes))


def _refused(name: str, share: float) -> Case:
    return name, min(share, 1e300), "refused", "refused" if share > 1.0 else "accepted"
