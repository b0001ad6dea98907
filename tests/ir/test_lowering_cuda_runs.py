"""What lowered CUDA programs compute: the emulator runs every one and finds neither a wrong number nor a race."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from cake_tui import ir
from cake_tui.ir import text
from cake_tui.ir.program import Program
from tests.emulator import Fault, emulate
from tests.emulator.compiling import NEEDED
from tests.ir.cuda_programs import CASES, Case, parse, shape_of

pytestmark = NEEDED

# Everything a program of these is made of is in another one too: they are run at full size only.
_ALSO_ELSEWHERE = (
    "double_buffered", "tiled_tails", "tma_store_epilogue", "cp_async_two_groups", "relu_in_place", "row_sum_split",
    "kmeans_one_warp", "kmeans_pipeline", "bias_gelu", "naive_runtime", "split_k",
)  # fmt: skip


def _check(program: Program, case: Case) -> None:
    """Run a program on the emulator and compare with the truth."""
    shape = shape_of(program, case.sizes)
    inputs = case.inputs(np.random.default_rng(1))
    truth = case.truth(inputs)
    outputs = {
        key: np.zeros(value.shape, np.int32 if value.dtype == np.int32 else np.float32) for key, value in truth.items()
    }
    found = emulate(ir.lower(program, "cuda", program.arch, (shape,)), shape, inputs, outputs)
    assert not isinstance(found, Fault), found
    for key, value in truth.items():
        if value.dtype == np.int32:
            assert found[key].tolist() == value.tolist(), key
        else:
            # Sums of at most 10,000 terms of unit size, in any order: far above their rounding, far below a lost term.
            np.testing.assert_allclose(found[key], value, rtol=2e-5, atol=2e-5 * max(1.0, float(np.abs(value).max())))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.soak] if name in _ALSO_ELSEWHERE else []) for name in CASES]
)
def test_a_program_computes_what_it_says(name: str) -> None:
    _check(parse(name, CASES[name].sizes), CASES[name])


@pytest.mark.parametrize(("stages", "unroll"), [(2, 8), (2, 1), (3, 4)])
def test_fragments_read_ahead_are_the_right_ones(stages: int, unroll: int) -> None:
    source = text.render(parse("cp_async_ring", CASES["cp_async_ring"].sizes))
    ahead = source.replace("for kk in 0..BK unroll 8:", f"for kk in 0..BK unroll {unroll} pipeline_stage {stages}:")
    assert ahead != source
    program = text.parse(ahead)
    lowered = ir.lower(program, "cuda", program.arch, (shape_of(program),))
    assert f"left[{stages}][4]" in lowered.source
    # Registers have no index at run time: every fragment is named by a constant once the loop is unrolled.
    (unrolled,) = re.findall(r"#pragma unroll (\d+)\n *for \(int kk", lowered.source)
    assert int(unrolled) % stages == 0
    _check(program, CASES["cp_async_ring"])


# Values that one thread each calculates, in a dtype; the truth in float64.
MAP = """\
program map ir 1 target cuda sm_90a
  size N = 1003
  param x: {dtype}[N]
  param y: {dtype}[N] out
launch main grid b = ceil(N/256) threads 256
  y[n in b*256 +: 256] = {value} where n < N
"""
VALUES = {
    "relu(x[n])": lambda x: np.maximum(x, 0),
    "sigmoid(x[n])": lambda x: 1 / (1 + np.exp(-x)),
    "silu(x[n])": lambda x: x / (1 + np.exp(-x)),
    "exp(x[n]) - log(abs(x[n]) + 1)": lambda x: np.exp(x) - np.log(np.abs(x) + 1),
    "min(x[n], 1.5, 2*x[n]) + max(-x[n], 0.25)": lambda x: np.minimum(np.minimum(x, 1.5), 2 * x) + np.maximum(-x, 0.25),
    "select(x[n] < 1 and not x[n] < -1, x[n], -3)": lambda x: np.where((x < 1) & (x >= -1), x, -3),
    "sqrt(square(x[n]) + 1)*rsqrt(square(x[n]) + 2)": lambda x: np.sqrt(x * x + 1) / np.sqrt(x * x + 2),
    "pow(abs(x[n]), 0.25) + tanh(x[n]) - floor(x[n])": lambda x: np.abs(x) ** 0.25 + np.tanh(x) - np.floor(x),
    "erf(x[n])*sin(x[n]) + cos(x[n])*ceil(x[n])": lambda x: _erf(x) * np.sin(x) + np.cos(x) * np.ceil(x),
    "x[n]*n/N": lambda x: x * np.arange(x.size) / x.size,
}
_erf = np.vectorize(math.erf, otypes=[np.float64])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_functions_are_right_and_keep_a_nan(dtype: str) -> None:
    # All of them in one kernel: a compilation each would cost more than everything else.
    outs = [f"y{number}" for number in range(len(VALUES))]
    lines = MAP.format(dtype=dtype, value="0").splitlines()
    program = text.parse(
        "\n".join(
            [*lines[:3], *(lines[3].replace("y:", f"{out}:") for out in outs), lines[4],
             *(lines[5].replace("y[", f"{out}[").replace("= 0", f"= {value}") for out, value in zip(outs, VALUES))]
        )
    )  # fmt: skip
    kind = np.float32 if dtype == "f32" else np.float64
    x = np.linspace(-6, 6, 1003).astype(kind)
    x[[0, 500, 1002]] = np.nan
    shape = shape_of(program)
    found = emulate(ir.lower(program, "cuda", "sm_90a", (shape,)), shape, {"x": x}, dict.fromkeys(outs, x))
    assert not isinstance(found, Fault), found
    for out, (value, truth) in zip(outs, VALUES.items()):
        expected = truth(x.astype(np.float64))
        if "select" in value:
            expected[np.isnan(x)] = -3  # a comparison with a NaN fails
        tolerance = 4e-6 if dtype == "f32" else 1e-13
        np.testing.assert_allclose(found[out], expected, rtol=tolerance, atol=tolerance, err_msg=value)


def test_parts_of_a_split_add_up_to_the_source() -> None:
    program = text.parse(
        """\
program parts ir 1 target cuda sm_90a
  size M = 64
  param a: f32[M, 64] align 16
  param high: f32[M, 64] out align 16
  param low: f32[M, 64] out align 16
  param again: f32[M, 64] out align 16
  workspace stored: bf16[M, 64] align 128
launch parts grid r = M/64 threads 256
  register x: f32[64, 64] spread 16 x 16 threads, 4 x 4 each
  register first: bf16[64, 64] spread 16 x 16 threads, 4 x 4 each
  register second: bf16[64, 64] spread 16 x 16 threads, 4 x 4 each
  register wide: f32[64, 64] spread 16 x 16 threads, 4 x 4 each
  copy a[r*64 +: 64, :] -> x vector 4
  split x -> first, second
  convert first -> wide
  copy first -> stored[r*64 +: 64, :] vector 4
  copy wide -> high[r*64 +: 64, :] vector 4
  low[r*64 +: 64, :] = second vector 4
launch back grid r = M threads 64
  again[r, j in 0 +: 64] = stored[r, j] vector 4
"""
    )
    shape = shape_of(program)
    a = np.random.default_rng(2).standard_normal((64, 64)).astype(np.float32)
    outputs = dict.fromkeys(("high", "low", "again"), np.zeros_like(a))
    found = emulate(ir.lower(program, "cuda", "sm_90a", (shape,)), shape, {"a": a}, outputs)
    assert not isinstance(found, Fault), found
    # bf16 has 8 bits of mantissa: the first part is right to 2^-9, both together to 2^-17.
    assert (np.abs(found["high"] - a) <= np.abs(a) * 2.0**-8).all()
    assert (np.abs(found["high"] + found["low"] - a) <= np.abs(a) * 2.0**-16).all()
    assert (found["again"] == found["high"]).all()
    assert (found["high"].view(np.uint32) & 0xFFFF == 0).all()


def _bf16(values: np.ndarray) -> np.ndarray:
    """Return the bits of values that bf16 holds exactly."""
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


@pytest.mark.parametrize("warps", [1, 2, 4, 8])
def test_matrix_instructions_add_every_product_once(warps: int) -> None:
    source = text.render(parse("mma_tensor_cores", {"M": 128, "N": 64, "K": 64}))
    program = text.parse(source.replace("threads 128", f"threads {32 * warps}"))
    shape = shape_of(program)
    random = np.random.default_rng(3)
    # Small whole numbers: bf16 holds them, and float holds their sums, exactly.
    a, b = (random.integers(-8, 9, extents).astype(np.float64) for extents in ((128, 64), (64, 64)))
    lowered = ir.lower(program, "cuda", program.arch, (shape,))
    found = emulate(lowered, shape, {"a": _bf16(a), "b": _bf16(b)}, {"y": np.zeros((128, 64), np.float32)})
    assert not isinstance(found, Fault), found
    assert found["y"].tolist() == (a @ b).tolist()
