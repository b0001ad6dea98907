"""The self-test proves that the check tells right from wrong, and says so with figures where it does not."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from cake_tui import kernels
from cake_tui.backends._reference import Referee
from cake_tui.backends._selftest import self_test
from cake_tui.errors import UserError
from cake_tui.model.jobs import SelfTested
from cake_tui.model.problem import BufferSpec, Problem, Shape
from tests.backends.contraction_kernels import problem_of, shape_of


def erf(values: np.ndarray) -> np.ndarray:
    import math

    return np.vectorize(math.erf, otypes=[np.float64])(values)


def verdict(problem: Problem) -> SelfTested:
    return self_test(problem, Referee(problem, np, erf))


def with_fill(problem: Problem, **changes: dict[str, str]) -> Problem:
    """Change fill or scale of some buffers."""
    buffers = tuple(msgspec.structs.replace(spec, **changes.get(spec.name, {})) for spec in problem.buffers)
    return msgspec.structs.replace(problem, buffers=buffers)


def unexpected(result: SelfTested) -> set[str]:
    return {name for name, _, expected, happened in result.cases if expected != happened}


@pytest.mark.parametrize("k", [1, 2, 3, 17, 64, 512, 4096, 8192])
def test_usual_problem_passes_at_any_length_of_sum(k: int) -> None:
    result = verdict(problem_of(shape_of(96, 80, k)))
    assert result.passed, result.cases
    names = {name for name, *_ in result.cases}
    assert {"one term of the sum left out", "inputs rounded to TF32", "fp32, one term after the other"} <= names


@pytest.mark.parametrize("value", ["acc", "acc + bias[n]", "gelu_erf(acc + bias[n])", "gelu_tanh(acc + bias[n])"])
def test_other_values_pass(value: str) -> None:
    result = verdict(problem_of(shape_of(64, 64, 100), value))
    assert result.passed, result.cases


def test_inputs_so_small_that_zeros_are_within_the_absolute_tolerance_are_refused() -> None:
    problem = problem_of(shape_of(256, 256, 64))
    problem = with_fill(problem, a={"scale": "0.001"}, b={"scale": "0.001"}, bias={"fill": "zeros"})
    result = verdict(problem)
    assert not result.passed
    assert "zeros, by tolerance_abs alone" in unexpected(result)
    assert 2e-5 < result.max_abs_output < 5e-5 == result.tolerance  # hand: 1e-6 * 8 * about 4 standard deviations
    assert 0.4 < result.nonzero_share < 0.6


def test_bias_that_hides_every_output_is_refused() -> None:
    result = verdict(with_fill(problem_of(shape_of(64, 64, 64)), bias={"fill": "-100"}))
    assert not result.passed
    assert "zeros, by tolerance_abs alone" in unexpected(result)
    assert result.max_abs_output == 0.0
    assert result.nonzero_share == 0.0


def test_tolerance_below_honest_rounding_is_refused() -> None:
    problem = msgspec.structs.replace(problem_of(shape_of(64, 64, 512)), tolerance_abs=1e-9)
    assert any(name.startswith("fp32") for name in unexpected(verdict(problem)))


def test_tolerance_that_lets_everything_pass_is_refused() -> None:
    problem = msgspec.structs.replace(problem_of(shape_of(64, 64, 512)), tolerance_abs=100.0)
    assert "a constant, by tolerance_abs alone" in unexpected(verdict(problem))


def test_units_that_let_reduced_precision_pass_are_refused() -> None:
    problem = msgspec.structs.replace(problem_of(shape_of(64, 64, 512)), tolerance_abs=0.05, tolerance_units=1e6)
    assert "inputs rounded to TF32" in unexpected(verdict(problem))


def test_constant_output_is_refused_for_elementwise_kernels_too() -> None:
    shape = Shape((("N", 1000),))
    buffers = (BufferSpec("x", "f32", ("N",)), BufferSpec("y", "f32", ("N",), role="out"))
    good = Problem("k", "elementwise", "silu(x[n])", buffers, (shape,))
    assert verdict(good).passed
    assert not verdict(msgspec.structs.replace(good, value="0 * x[n]")).passed


def test_reference_text_is_used_and_its_mistakes_are_the_users() -> None:
    problem = msgspec.structs.replace(problem_of(shape_of(40, 40, 40)), family=None)
    body = "return xp.maximum(a @ b + bias, 0), abs(a) @ abs(b) + abs(bias)"
    good = f"def reference(xp, a, b, bias):\n    {body}\n"
    assert verdict(msgspec.structs.replace(problem, reference=good)).passed
    for text, word in (
        ("def reference(xp, a, b, bias)\n    pass\n", "line 1"),
        ("x = 1\n", "no function reference"),
        ("def reference(xp, a, b):\n    return a, b\n", "does not take"),
    ):
        with pytest.raises(UserError, match=word):
            verdict(msgspec.structs.replace(problem, reference=text))


def test_family_without_a_reference_is_a_users_mistake() -> None:
    with pytest.raises(UserError, match=r"reference\.py"):
        verdict(msgspec.structs.replace(problem_of(), family="reduction"))


@pytest.mark.parametrize(
    ("kernel", "sizes"), [("bias_gelu", (1 << 20, 1 << 14)), ("row_sum", (1 << 20, 4096)), ("row_sum", (1, 1))]
)
def test_sizes_that_are_not_summed_cost_no_time(kernel: str, sizes: tuple[int, int]) -> None:
    problem = kernels.load(kernel, target="cuda", shapes=[])
    names = [name for name, _ in problem.shapes[-1].sizes]
    huge = Shape(tuple(zip(names, sizes)))  # 64 GB and 16 GB of float32: more than can be drawn here
    result = verdict(msgspec.structs.replace(problem, shapes=(huge,)))
    assert result.passed, result.cases
