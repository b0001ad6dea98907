"""The CUDA programs of tests/programs at sizes that the emulator runs in a moment, with inputs and float64 truth."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cake_tui import ir
from cake_tui.ir import text
from cake_tui.ir.program import Program
from cake_tui.model.lowered import Lowered
from cake_tui.model.problem import Shape

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
FOLDER = Path(__file__).parent.parent / "programs"
NAMES = tuple(path.stem for path in sorted(FOLDER.glob("*.cake")) if "target cuda" in path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Case:
    """Sizes that keep a program's multiples, random inputs and what comes out."""

    sizes: Mapping[str, int]
    inputs: Callable[[np.random.Generator], Arrays]
    truth: Callable[[Arrays], Arrays]


def parse(name: str, sizes: Mapping[str, int] | None = None) -> Program:
    """Parse a program of tests/programs, with other constant sizes where given."""
    source = (FOLDER / f"{name}.cake").read_text(encoding="utf-8")
    for size, value in (sizes or {}).items():
        source = re.sub(rf"size {size} = \d+", f"size {size} = {value}", source)
    return text.parse(source)


def shape_of(program: Program, sizes: Mapping[str, int] | None = None) -> Shape:
    """Return a shape for a program; run-time sizes that are not given become an odd number of their multiple."""
    given = dict(sizes or {})
    return Shape(
        tuple(
            (one.name, given.get(one.name, one.value if one.value is not None else 37 * one.multiple))
            for one in program.sizes
        )
    )


def lowered(name: str, sizes: Mapping[str, int] | None = None) -> Lowered:
    """Lower a program of tests/programs; raises Ended(Rejected) where that is refused."""
    program = parse(name, sizes)
    return ir.lower(program, "cuda", program.arch, (shape_of(program, sizes),))


def _normal(random: np.random.Generator, *extents: int) -> Array:
    return random.standard_normal(extents).astype(np.float32)


def _product(inputs: Arrays) -> Array:
    product: Array = inputs["a"].astype(np.float64) @ inputs["b"]
    return product


def _matmul(m: int, n: int, k: int) -> Case:
    return Case(
        {"M": m, "N": n, "K": k},
        lambda random: {
            "a": _normal(random, m, k), "bias": _normal(random, n),
            "b": _normal(random, k, n) / np.float32(math.sqrt(k)),
        },
        lambda inputs: {"y": np.maximum(_product(inputs) + inputs["bias"], 0)},
    )  # fmt: skip


def _row_sum(rows: int, columns: int) -> Case:
    return Case(
        {"R": rows, "C": columns},
        lambda random: {"x": _normal(random, rows, columns)},
        lambda inputs: {"y": inputs["x"].sum(1, dtype=np.float64)},
    )


def _nearest(points: int, depth: int, centres: int, *, distance: bool = False) -> Case:
    def truth(inputs: Arrays) -> Arrays:
        apart = ((inputs["x"].astype(np.float64)[:, None] - inputs["c"][None]) ** 2).sum(2)
        found = {"label": apart.argmin(1).astype(np.int32)}
        return {**found, "dist": apart.min(1)} if distance else found

    return Case(
        {"N": points, "D": depth, "K": centres},
        lambda random: {"x": _normal(random, points, depth), "c": _normal(random, centres, depth)},
        truth,
    )


def _map(
    sizes: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]], value: Callable[..., Array], out: str = "y"
) -> Case:
    return Case(
        sizes,
        lambda random: {name: _normal(random, *shape) for name, shape in shapes.items()},
        lambda inputs: {out: value(*(inputs[name].astype(np.float64) for name in shapes))},
    )


def _softmax(x: Array) -> Array:
    grown = np.exp(x - x.max(1, keepdims=True))
    shares: Array = grown / grown.sum(1, keepdims=True)
    return shares


def _layernorm(x: Array, g: Array) -> Array:
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * g


def _gelu(x: Array, bias: Array) -> Array:
    erf = np.vectorize(math.erf, otypes=[np.float64])
    return 0.5 * (x + bias) * (1 + erf((x + bias) / math.sqrt(2)))


def _gelu_tanh(x: Array, bias: Array) -> Array:
    z = x + bias
    return 0.5 * z * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))


CASES: Mapping[str, Case] = {
    "naive": _matmul(41, 70, 33),
    "naive_runtime": _matmul(41, 70, 33),
    "tiled_shared": _matmul(48, 32, 64),
    "tiled_tails": _matmul(45, 67, 50),
    "register_blocked": _matmul(128, 236, 64),
    "cp_async_ring": _matmul(100, 72, 84),
    "double_buffered": _matmul(64, 96, 64),
    "split_k": _matmul(128, 64, 512),
    "split_k_atomic": _matmul(100, 84, 512),
    "tma_ring": _matmul(256, 128, 64),
    "tma_store_epilogue": _matmul(128, 64, 64),
    "persistent_gemm": _matmul(300, 260, 96),
    "persistent_short": _matmul(192, 128, 64),  # six tiles on four blocks
    "persistent_tiled": _matmul(192, 128, 32),
    "tma_tails": _map(
        {"M": 100, "N": 72, "K": 84}, {"a": (100, 84), "b": (84, 72), "bias": (72,)}, lambda a, b, bias: a @ b + bias
    ),
    "bias_gelu": _map({"M": 5, "N": 1000}, {"x": (5, 1000), "bias": (1000,)}, _gelu),
    "cp_async_groups": _map({"M": 64, "N": 1024}, {"x": (64, 1024), "bias": (1024,)}, _gelu_tanh),
    "cp_async_two_groups": Case(
        {"R": 6, "C": 2048},
        lambda random: {"a": _normal(random, 6, 2048), "b": _normal(random, 6, 2048)},
        lambda inputs: {f"sum_{name}": inputs[name].sum(1, dtype=np.float64) for name in "ab"},
    ),
    "embedding": Case(
        {"V": 50, "T": 7, "D": 1024},
        lambda random: {"table": _normal(random, 50, 1024), "ids": random.integers(0, 50, 7).astype(np.int32)},
        lambda inputs: {"y": inputs["table"][inputs["ids"]]},
    ),
    "relu_in_place": _map({"N": 512}, {"x": (512,)}, lambda x: np.maximum(x, 0), out="x"),
    "row_sum_block": _row_sum(5, 4000),
    "row_sum_split": _row_sum(3, 10000),
    "row_sum_warp": _row_sum(19, 103),
    "cluster_reduce": _row_sum(3, 4096),
    "tree_reduction": _row_sum(3, 1024),
    "softmax_two_pass": _map({"R": 4, "C": 1000}, {"x": (4, 1000)}, _softmax),
    "layernorm": _map({"R": 4, "C": 1024}, {"x": (4, 1024), "g": (1024,)}, _layernorm),
    "stencil": _map({"N": 512}, {"x": (512,)}, lambda x: np.convolve(x, [1, 1, 1], "same")),
    "transpose": _map({"M": 70, "N": 77}, {"x": (70, 77)}, lambda x: x.T.copy()),
    "scale_runtime": _map({"N": 5000}, {"x": (5000,)}, lambda x: x * 2),
    "named_barriers": _map({"N": 8192}, {"x": (8192,)}, lambda x: np.maximum(x, 0)),
    "argmin_block": _nearest(9, 32, 100, distance=True),
    "kmeans_one_warp": _nearest(64, 64, 16),
    "kmeans_pipeline": _nearest(1024, 64, 16),
    "kmeans_roles": _nearest(1024, 64, 16),
    "topk_rows": Case(
        {"R": 3, "C": 1000},
        lambda random: {"x": _normal(random, 3, 1000)},
        lambda inputs: {
            "values": -np.sort(-inputs["x"], 1)[:, :8],
            "indices": np.argsort(-inputs["x"], 1, kind="stable")[:, :8].astype(np.int32),
        },
    ),
    "attention_online": _map(
        {"L": 256, "D": 64},
        {"q": (256, 64), "k": (256, 64), "v": (256, 64)},
        lambda q, k, v: _softmax(q @ k.T) @ v,
        out="o",
    ),
}
