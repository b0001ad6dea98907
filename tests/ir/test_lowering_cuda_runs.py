"""What lowered CUDA programs compute: the emulator runs every one and finds neither a wrong number nor a race."""

from __future__ import annotations

import numpy as np
import pytest

from cake_tui import ir
from tests.emulator import Fault, emulate
from tests.ir.cuda_programs import CASES, parse, shape_of

# Everything a program of these is made of is in another one too: they are run at full size only.
_ALSO_ELSEWHERE = (
    "double_buffered", "tiled_tails", "tma_store_epilogue", "cp_async_two_groups", "relu_in_place", "row_sum_split",
    "kmeans_one_warp", "kmeans_pipeline", "bias_gelu", "naive_runtime", "split_k",
)  # fmt: skip


@pytest.mark.cc
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.soak] if name in _ALSO_ELSEWHERE else []) for name in CASES]
)
def test_a_program_computes_what_it_says(name: str) -> None:
    case = CASES[name]
    program = parse(name, case.sizes)
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
