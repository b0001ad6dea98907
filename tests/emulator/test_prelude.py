"""The emulator's functions stand for those of the prelude that hold hardware instructions: all, and no others."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cake_tui.ir.lower.cuda import prelude
from cake_tui.model.lowered import Argument, Launch, LaunchPlan, Lowered
from cake_tui.model.problem import Shape
from tests.emulator import Array, Fault, emulate
from tests.emulator.compiling import NEEDED
from tests.emulator.source import emulated, has_instructions, rewrite, signature, with_prelude

EDGES = (
    0,
    0x80000000,
    1,
    0x7F800000,
    0xFF800000,
    0x7FC00000,
    0x7F7FFFFF,
    0x3F800000,
    0x477FE000,
    0x477FF000,
    0x33000000,
)
FLOATS = np.concatenate(
    [np.random.default_rng(0).integers(0, 1 << 32, 4000, dtype=np.uint64), np.array(EDGES, np.uint64)]
).astype(np.uint32)


def test_each_function_with_instructions_is_emulated_and_no_other() -> None:
    blocks = {signature(block.text): block.text for block in prelude.blocks()}
    instructions = {name for name, block in blocks.items() if has_instructions(block)}
    assert instructions <= set(emulated())
    assert set(emulated()) - instructions <= {"struct __align__(64) tensor_map"}  # opaque there, readable here


def test_a_rewritten_source_keeps_its_lines() -> None:
    kernel = "void kernel() {\n  __shared__ float x[2][3], y[4];\n  cp_async<4>(x, y); // here\n}\n"
    source = with_prelude(kernel)
    rewritten = rewrite(source, [])
    assert "asm" not in rewritten
    assert next(i for i, line in enumerate(source.splitlines()) if "// here" in line) == next(
        i for i, line in enumerate(rewritten.splitlines()) if "// here" in line
    )


def _run(source: str, x: Array, kind: type, blocks: int, threads: int, cluster: int = 1) -> Array | Fault:
    """Run a whole source whose one kernel takes x and writes a y as long."""
    arguments = (Argument("buffer", "x"), Argument("buffer", "y"))
    launch = Launch("kernel", (blocks, 1, 1), arguments, (threads, 1, 1), (cluster, 1, 1))
    shape = Shape((("N", x.size),))
    lowered = Lowered("cuda", "sm_90a", source, (), (LaunchPlan(shape, (launch,)),))
    found = emulate(lowered, shape, {"x": x}, {"y": np.empty(x.shape, kind)})
    return found if isinstance(found, Fault) else found["y"]


def _mapped(expression: str, out: str, x: Array) -> Array:
    """Return what a kernel that maps x through an expression of the prelude gives."""
    kernel = (
        f'extern "C" __global__ void kernel(const float *x, {out} *y) {{\n'
        f"  const int n = blockIdx.x * 256 + threadIdx.x;\n  if (n < {x.size}) y[n] = {expression};\n}}\n"
    )
    kind = np.float32 if out == "float" else np.uint16
    found = _run(with_prelude(kernel), x, kind, -(-x.size // 256), 256)
    assert not isinstance(found, Fault), found
    return found


class TestRoundings:
    pytestmark = NEEDED

    def test_halves_are_rounded_to_nearest_even(self) -> None:
        x = FLOATS.view(np.float32)
        with np.errstate(over="ignore"):
            expected = x.astype(np.float16)
        number = ~np.isnan(x)
        assert (_mapped("to_f16(x[n])", "f16", x).view(np.float16)[number] == expected[number]).all()
        assert np.isnan(_mapped("to_float(f16(to_f16(x[n])))", "float", x)[~number]).all()
        assert (_mapped("to_float(f16(to_f16(x[n])))", "float", x)[number] == expected[number].astype(np.float32)).all()

    @pytest.mark.parametrize(("function", "dropped"), [("to_float(bf16(to_bf16(x[n])))", 16), ("to_tf32(x[n])", 13)])
    def test_shorter_floats_are_the_nearest_ones(self, function: str, dropped: int) -> None:
        x = FLOATS.view(np.float32)
        x = x[np.isfinite(x) & (np.abs(x) < 3e38)]
        low = (x.view(np.uint32) >> dropped << dropped).view(np.float32).astype(np.float64)
        high = ((x.view(np.uint32) >> dropped) + 1 << dropped).astype(np.uint32).view(np.float32).astype(np.float64)
        found = _mapped(function, "float", x).astype(np.float64)
        wide = x.astype(np.float64)
        assert ((found == low) | (found == high)).all()
        assert (np.abs(found - wide) <= np.minimum(np.abs(low - wide), np.abs(high - wide))).all()

    @pytest.mark.parametrize(("function", "right"), [("min_nan", np.minimum), ("max_nan", np.maximum)])
    def test_a_nan_comes_through(self, function: str, right: np.ufunc) -> None:
        x = FLOATS.view(np.float32)
        found = _mapped(f"{function}(x[n], 1.5f)", "float", x)
        assert np.array_equal(found, right(x, np.float32(1.5)), equal_nan=True)


# Function, operator: how a thread calls it, and what comes out. A cluster's takes what its blocks have.
OPERATORS: dict[str, Callable[..., Any]] = {"Add": np.sum, "Multiply": np.prod, "Maximum": np.max, "Minimum": np.min}
TOGETHER = {
    **{("block_reduce", name): f"value = block_reduce<{name}, 4>(value, scratch);" for name in OPERATORS},
    **{
        (
            "cluster_reduce",
            name,
        ): f"value = cluster_reduce<{name}, 2>(block_reduce<{name}, 4>(value, scratch), scratch);"
        for name in OPERATORS
    },
    **{("block_pick", name): f"block_pick<{name}, 4>(value, index, scratch);" for name in ("Least", "Greatest")},
}
REDUCED: dict[str, Callable[..., Any]] = {**OPERATORS, "Least": np.min, "Greatest": np.max}


class TestReductions:
    pytestmark = NEEDED

    def test_all_are_here(self) -> None:
        others = {"cluster_sync", "cluster_read"}
        found = {name for name in prelude.names() if name.startswith(("block_", "cluster_"))} - others
        assert found == {function for function, _ in TOGETHER}

    @pytest.mark.parametrize(("name", "operator"), TOGETHER)
    def test_a_reduction_is_right_and_needs_each_of_its_barriers(self, name: str, operator: str) -> None:
        blocks = 2 if name.startswith("cluster") else 1
        x = (np.random.default_rng(5).random(128 * blocks) + 0.5).astype(np.float32)
        # Twice with the same scratch memory, so that the first barrier is needed too.
        source = with_prelude(
            'extern "C" __global__ void __launch_bounds__(128) kernel(const float *x, float *y) {\n'
            "  __shared__ float scratch[8];\n  const int n = blockIdx.x * 128 + threadIdx.x;\n"
            f"  float value = x[n];\n  int index = n;\n  {TOGETHER[name, operator]}\n"
            f"  value = value / 2 + x[n];\n  {TOGETHER[name, operator]}\n  y[n] = value;\n}}\n"
        )
        reduce = REDUCED[operator]
        found = _run(source, x, np.float32, blocks, 128, blocks)
        assert not isinstance(found, Fault), found
        assert np.allclose(found, reduce(reduce(x.astype(np.float64)) / 2 + x), rtol=1e-5)
        if operator not in ("Add", "Least"):
            return  # the function is the same
        function = next(block.text for block in prelude.blocks() if block.name == name)
        barriers = list(re.finditer(r"__syncthreads\(\);|cluster_sync\(\);", function))
        assert len(barriers) >= 2
        for barrier in barriers:
            without = source.replace(function, f"{function[: barrier.start()]};{function[barrier.end() :]}")
            assert isinstance(_run(without, x, np.float32, blocks, 128, blocks), Fault), barrier


class TestMatrices:
    pytestmark = NEEDED

    @pytest.mark.parametrize("kind", ["bf16", "f16"])
    def test_a_warp_multiplies_matrices(self, kind: str) -> None:
        source = with_prelude(
            'extern "C" __global__ void __launch_bounds__(32) kernel(const float *x, float *y) {\n'
            f"  __shared__ __align__(16) {kind} a[16][16], b[16][8];\n"
            f"  for (int i = threadIdx.x; i < 256; i += 32) a[i / 16][i % 16] = to_{kind}(x[i]);\n"
            f"  for (int i = threadIdx.x; i < 128; i += 32) b[i / 8][i % 8] = to_{kind}(x[256 + i]);\n"
            "  __syncwarp();\n  unsigned left[4], right[2];\n  const int lane = threadIdx.x;\n"
            "  load_matrix_a(left, &a[lane % 16][lane / 16 * 8]);\n  load_matrix_b(right, &b[lane % 16][0]);\n"
            f"  float c[4] = {{}};\n  mma_{kind}(c[0], c[1], c[2], c[3], left, right);\n"
            "  for (int i = 0; i < 4; ++i) y[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = c[i];\n}\n"
        )
        x = np.random.default_rng(2).integers(-8, 9, 384).astype(np.float32)  # exact in all of these types
        found = _run(source, x, np.float32, 1, 32)
        assert not isinstance(found, Fault), found
        expected = x[:256].reshape(16, 16).astype(np.float64) @ x[256:].reshape(16, 8)
        assert (found[:128].reshape(16, 8) == expected).all()
