"""References, input sets and bounds against hand calculation and plain float64 numpy."""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import numpy as np
import pytest

from cake_tui.backends._bounds import compare
from cake_tui.backends._inputs import SETS, make_inputs, sets_of
from cake_tui.backends._reference import Referee, U, readable
from cake_tui.backends._values import Evaluator
from cake_tui.errors import UserError
from cake_tui.ir.families import is_exact
from cake_tui.model.problem import BufferSpec, Problem, Shape
from tests.backends.contraction_kernels import problem_of, shape_of


def erf(values: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf, otypes=[np.float64])(values)


def referee(problem: Problem) -> Referee:
    return Referee(problem, np, erf)


def test_contraction_by_hand() -> None:
    shape = shape_of(2, 2, 2)
    inputs = {
        "a": np.array([[1, -2], [3, 4]], np.float32),
        "b": np.array([[5, 6], [7, -8]], np.float32),
        "bias": np.array([-1, 2], np.float32),
    }
    found = referee(problem_of(shape)).compute(inputs, shape)
    assert found.values["y"].tolist() == [[0, 24], [42, 0]]  # relu of -9-1, 22+2, 43-1, -14+2
    assert found.scales["y"].tolist() == [[20, 24], [44, 52]]  # |a||b| + |bias|


@pytest.mark.parametrize(
    ("value", "of"),
    [
        ("gelu_erf(acc + bias[n])", lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2)))),
        ("silu(acc + bias[n])", lambda x: x / (1 + math.exp(-x))),
        (
            "select(acc + bias[n] > 0, 2 * (acc + bias[n]), tanh(acc + bias[n]))",
            lambda x: 2 * x if x > 0 else math.tanh(x),
        ),
        ("max(acc + bias[n], -0.5, 0.25)", lambda x: max(x, -0.5, 0.25)),
        ("-square(acc + bias[n]) % 3", lambda x: -(x * x) % 3),
    ],
)
def test_values_agree_with_a_scalar_evaluation(value: str, of: object) -> None:
    shape = shape_of(5, 7, 3)
    problem = problem_of(shape, value)
    inputs = make_inputs(problem, shape, "default", 3)
    found = referee(problem).compute(inputs, shape).values["y"]
    wide = {name: array.astype(np.float64) for name, array in inputs.items()}
    for m in range(5):
        for n in range(7):
            x = math.fsum(wide["a"][m, k] * wide["b"][k, n] for k in range(3)) + wide["bias"][n]
            assert found[m, n] == pytest.approx(of(x), rel=1e-12, abs=1e-12)  # type: ignore[operator]


def test_rows_alone_equal_those_of_the_whole() -> None:
    shape = shape_of(9, 6, 4)
    one = referee(problem_of(shape))
    inputs = make_inputs(one.problem, shape, "default", 1)
    whole, some = one.compute(inputs, shape), one.rows(inputs, shape, [2, 7])
    np.testing.assert_allclose(some.values["y"], whole.values["y"][[2, 7]], rtol=1e-13)
    np.testing.assert_allclose(some.scales["y"], whole.scales["y"][[2, 7]], rtol=1e-13)


def test_contractions_over_other_layouts_follow_the_names_of_their_axes() -> None:
    sizes = Shape((("B", 2), ("M", 3), ("N", 4), ("K", 5)))
    buffers = (
        BufferSpec("x", "f32", ("K", "B", "M")), BufferSpec("w", "f32", ("N", "K")),
        BufferSpec("c", "f32", ("N", "M")), BufferSpec("y", "f32", ("B", "M", "N"), role="out"),
    )  # fmt: skip
    problem = Problem("odd", "contraction", "acc - c[n, m]", buffers, (sizes,))
    inputs = make_inputs(problem, sizes, "default", 8)
    found = referee(problem).compute(inputs, sizes).values["y"]
    x, w, c = (inputs[name].astype(np.float64) for name in ("x", "w", "c"))
    for b, m, n in np.ndindex(2, 3, 4):
        assert found[b, m, n] == pytest.approx(sum(x[k, b, m] * w[n, k] for k in range(5)) - c[n, m], rel=1e-12)


def test_elementwise_scale_is_size_through_the_derivative() -> None:
    shape = Shape((("N", 3),))
    buffers = (BufferSpec("x", "f32", ("N",)), BufferSpec("y", "f32", ("N",), role="out"))
    problem = Problem("square", "elementwise", "square(x[n])", buffers, (shape,))
    found = referee(problem).compute({"x": np.array([0.0, -3.0, 10.0], np.float32)}, shape)
    assert found.values["y"].tolist() == [0, 9, 100]
    np.testing.assert_allclose(found.scales["y"], [0, 27, 300], atol=1e-4)  # |y| + |x| |2x|


def test_exactness_follows_the_value() -> None:
    exact = ["acc", "relu(acc + bias[n])", "max(acc, 0) - 3", "select(acc > 2, acc, -acc)"]
    rounded = ["2.5 + acc", "acc * bias[n]", "gelu_erf(acc)", "acc / 3", "exp(acc)"]
    assert [is_exact(value) for value in exact] == [True] * len(exact)
    assert [is_exact(value) for value in rounded] == [False] * len(rounded)


# --- input sets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("input_set", SETS)
def test_sets_are_the_same_by_seed_and_differ_by_seed(input_set: str) -> None:
    shape = shape_of(20, 30, 40)
    problem = problem_of(shape)
    first, again, other = (make_inputs(problem, shape, input_set, seed) for seed in (7, 7, 8))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert any(not np.array_equal(first[name], other[name]) for name in first)
    assert all(array.dtype == np.float32 for array in first.values())


def test_sets_have_the_sizes_that_their_bounds_are_meant_for() -> None:
    shape = shape_of(64, 64, 400)
    problem = problem_of(shape)
    one = referee(problem)
    made = {name: make_inputs(problem, shape, name, 2) for name in SETS}
    default = one.compute(made["default"], shape).values["y"]
    assert 0.5 < default.std() < 1.5
    positive = one.compute(made["positive"], shape).values["y"]
    assert 0.5 < positive.min() < positive.max() < 3.0  # ReLU hides nothing
    integers = made["integers"]
    assert all((array == np.rint(array)).all() and (array != 0).all() for array in integers.values())
    assert max(np.abs(array).max() for array in integers.values()) <= 8
    hot = made["one-hot"]
    assert (hot["a"].sum(axis=1) == 1).all()
    assert set(np.unique(hot["a"])) == {0.0, 1.0}
    assert len(np.unique(hot["a"].argmax(axis=1))) == 64  # as many different terms as there are rows


@pytest.mark.parametrize("k", [1, 4096, 300_000])
def test_integer_sums_are_exact_in_any_order(k: int) -> None:
    shape = shape_of(2, 2, k)
    inputs = make_inputs(problem_of(shape), shape, "integers", 5)
    a, b = inputs["a"].astype(np.float64), inputs["b"].astype(np.float64)
    assert (np.abs(a) @ np.abs(b)).max() + 8 < 2**24


def test_fills_and_scales_are_the_problems() -> None:
    shape = Shape((("N", 50_000),))
    fills = ("normal", "uniform", "zeros", "ones", "-100", "integers")
    buffers = tuple(BufferSpec(f"x{i}", "f32", ("N",), fill, "2/sqrt(N)") for i, fill in enumerate(fills))
    problem = Problem("k", "elementwise", "x0[n]", (*buffers, BufferSpec("y", "f32", ("N",), role="out")), (shape,))
    made = make_inputs(problem, shape, "default", 1)
    scale = 2 / math.sqrt(50_000)
    assert made["x0"].std() == pytest.approx(scale, rel=0.03)
    assert made["x1"].mean() == pytest.approx(scale / 2, rel=0.03)
    assert set(made["x2"]) == {0.0}
    assert set(made["x3"]) == {np.float32(scale)}
    assert made["x4"][0] == pytest.approx(-100 * scale)
    assert sets_of(problem) == ("integers", "default", "positive")


@pytest.mark.parametrize(("field", "text"), [("scale", "1/sqrt(Q)"), ("scale", "1/"), ("shape", "N - 0.5")])
def test_expression_without_a_value_is_the_users_mistake(field: str, text: str) -> None:
    problem = problem_of(shape_of(4, 4, 4))
    changed = msgspec.structs.replace(problem.buffers[1], **{field: (text,) if field == "shape" else text})
    with pytest.raises(UserError, match="buffer b"):
        readable(msgspec.structs.replace(problem, buffers=(problem.buffers[0], changed, *problem.buffers[2:])))


# --- bounds ---------------------------------------------------------------------------------------------


def judged(found: list[float], value: list[float], scale: float, rule: str) -> tuple[int, float]:
    result = compare(np.array(found, np.float32), np.array(value), np.full(len(value), scale), problem_of(), rule)  # type: ignore[arg-type]
    return result.bad_elements, result.bound_share


def test_random_bound_is_both_absolute_and_in_units() -> None:
    assert judged([1.0 + 2e-5], [1.0], 1e3, "random") == (0, pytest.approx(0.4, rel=0.01))
    assert judged([1.0 + 6e-5], [1.0], 1e3, "random")[0] == 1  # beyond 5e-5
    inside, beyond = 1.0 + 180 * U * 0.1, 1.0 + 200 * U * 0.1
    assert judged([inside], [1.0], 0.1, "random")[0] == 0
    assert judged([beyond], [1.0], 0.1, "random")[0] == 1  # beyond 192 u S


def test_exact_rules() -> None:
    assert judged([3.0, -0.0], [3.0, 0.0], 1.0, "bits")[0] == 0
    assert judged([3.0000002], [3.0], 1.0, "bits")[0] == 1
    ulp = float(np.spacing(np.float32(3.0)))
    assert judged([3.0 + 4 * ulp], [3.0], 1e-9, "rounded")[0] == 0
    assert judged([3.0 + 6 * ulp], [3.0], 1e-9, "rounded")[0] == 1


@pytest.mark.parametrize("rule", ["random", "bits", "rounded"])
def test_nan_and_infinity_fail_every_rule(rule: str) -> None:
    for wrong in (math.nan, math.inf, -math.inf):
        result = compare(np.array([1.0, wrong], np.float32), np.ones(2), np.ones(2), problem_of(), rule)  # type: ignore[arg-type]
        assert (result.bad_elements, result.first_index) == (1, (1,))
        assert result.nans == math.isnan(wrong)
        assert not result.passed
    right = compare(
        np.array([math.nan, math.inf], np.float32), np.array([math.nan, math.inf]), np.ones(2), problem_of(), rule
    )  # type: ignore[arg-type]
    assert right.passed  # where the reference itself says so


@pytest.mark.parametrize("name", ["gelu_erf", "gelu_tanh"])
def test_gelu_keeps_its_digits_far_below_zero(name: str) -> None:
    x = np.array([-15.0, -12.0, -8.0, -6.0, -4.25, -4.2, -1.0, 0.0, 3.0])
    tanh = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    exact = {
        "gelu_erf": [0.5 * v * math.erfc(-v / math.sqrt(2)) for v in x],
        "gelu_tanh": [v / (1 + math.exp(-2 * z)) for v, z in zip(x, tanh)],
    }
    found = Evaluator(np, ("n",), erf).value(f"{name}(x[n])", {"x": x})
    assert np.allclose(found, exact[name], rtol=1e-11, atol=0)


ROWS = np.random.default_rng(3).standard_normal((5, 7))


@pytest.mark.parametrize(
    ("mapped", "combine", "value", "exact", "scale"),
    [
        ("x[r, c]", "add", "acc", ROWS.sum(axis=1), np.abs(ROWS).sum(axis=1)),
        ("abs(x[r, c])", "max", "acc", np.abs(ROWS).max(axis=1), np.abs(ROWS).max(axis=1)),
        ("x[r, c]", "min", "acc", ROWS.min(axis=1), np.abs(ROWS).max(axis=1)),
        ("square(x[r, c])", "add", "2*acc", 2 * (ROWS**2).sum(axis=1), 4 * (ROWS**2).sum(axis=1)),
    ],
)
def test_a_reduction_is_its_map_combined(
    mapped: str, combine: Literal["add", "max", "min"], value: str, exact: np.ndarray, scale: np.ndarray
) -> None:
    buffers = (BufferSpec("x", "f32", ("R", "C")), BufferSpec("y", "f32", ("R",), role="out"))
    shape = Shape((("R", 5), ("C", 7)))
    problem = Problem("rows", "reduction", value, buffers, (shape,), map=mapped, combine=combine)
    judge = referee(problem)
    found = judge.compute({"x": ROWS}, shape)
    assert np.allclose(found.values["y"], exact, rtol=1e-14)
    assert np.allclose(found.scales["y"], scale, rtol=1e-6)
    assert np.allclose(judge.in_single({"x": ROWS.astype(np.float32)}), exact, rtol=1e-5)
