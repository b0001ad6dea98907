"""Kernels written by hand for the emulator's own tests: how they are launched, what they are given, what is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cake_tui.model.lowered import Argument, Launch, LaunchPlan, Lowered, TensorMap, Workspace
from cake_tui.model.problem import Shape
from tests.emulator import Array, Fault, emulate
from tests.emulator.source import with_prelude

KERNELS = Path(__file__).parent / "kernels"
Sizes = dict[str, int]


@dataclass(frozen=True)
class Handmade:
    """One kernel file: its launches and workspaces for given sizes, and whether `a @ b` or rows of x are summed."""

    launches: Callable[[Sizes], tuple[Launch, ...]]
    workspaces: Callable[[Sizes], tuple[Workspace, ...]] = lambda sizes: ()
    sums: str = "products"


def _grid(sizes: Sizes, rows: int, columns: int, parts: int = 1) -> tuple[int, int, int]:
    return -(-sizes["N"] // columns), -(-sizes["M"] // rows), parts


def _arguments(buffers: str, sizes: str = "MNK", maps: str = "") -> tuple[Argument, ...]:
    workspaces = ("parts", "done")
    given = [Argument("workspace" if name in workspaces else "buffer", name) for name in buffers.split()]
    given += [Argument("size", name) for name in sizes]
    return (*given, *(Argument("tensor_map", name) for name in maps.split()))


def _tiles(entry: str, rows: int, columns: int, threads: int, smem_bytes: int = 0) -> Handmade:
    def launches(sizes: Sizes) -> tuple[Launch, ...]:
        grid, block = _grid(sizes, rows, columns), (threads, 1, 1)
        return (Launch(entry, grid, _arguments("a b bias y"), block, smem_bytes=smem_bytes),)

    return Handmade(launches)


def _roles(sizes: Sizes) -> tuple[Launch, ...]:
    m, n, k = sizes["M"], sizes["N"], sizes["K"]
    maps = (
        TensorMap("a_map", "a", "f32", (k, m), (4 * k,), (8, 16)),
        TensorMap("b_map", "b", "f32", (n, k), (4 * n,), (32, 8)),
    )
    arguments = _arguments("bias y", maps="a_map b_map")
    return (Launch("roles", _grid(sizes, 16, 32), arguments, (96, 1, 1), tensor_maps=maps),)


def _split_k(sizes: Sizes) -> tuple[Launch, ...]:
    elements = sizes["M"] * sizes["N"]
    return (
        Launch("partial", _grid(sizes, 8, 8, 3), _arguments("a b parts"), (64, 1, 1)),
        Launch("combine", (-(-elements // 64), 1, 1), _arguments("parts bias y", "MN"), (64, 1, 1)),
    )


def _row_sum(sizes: Sizes) -> tuple[Launch, ...]:
    return (Launch("row_sum", (3, 1, 1), _arguments("x y", "MN"), (128, 1, 1)),)


def _ping_pong(sizes: Sizes) -> tuple[Launch, ...]:
    return (Launch("ping_pong", (-(-sizes["N"] // 64), 1, 1), _arguments("x y", "MN"), (128, 1, 1)),)


def _atomic_sum(sizes: Sizes) -> tuple[Launch, ...]:
    return (
        Launch("zero", (-(-sizes["N"] // 64), 1, 1), _arguments("y done", "N"), (64, 1, 1)),
        Launch("add", (sizes["M"], 1, 1), _arguments("x y done", "MN"), (64, 1, 1)),
    )


HANDMADE = {
    "naive": _tiles("naive", 8, 8, 64),
    "tiled": _tiles("tiled", 16, 32, 128),
    "double_buffered": _tiles("double_buffered", 16, 16, 256),
    "cp_async_ring": _tiles("cp_async_ring", 32, 32, 64, smem_bytes=3 * 8 * 64 * 4),
    "roles": Handmade(_roles),
    "split_k": Handmade(_split_k, lambda sizes: (Workspace("parts", 12 * sizes["M"] * sizes["N"]),)),
    "row_sum": Handmade(_row_sum, sums="rows"),
    "ping_pong": Handmade(_ping_pong, sums="columns"),
    "atomic_sum": Handmade(_atomic_sum, lambda sizes: (Workspace("done", 4),), "columns"),
}  # fmt: skip


def source_of(name: str) -> str:
    """Return the text of a kernel file, without the prelude."""
    return (KERNELS / f"{name}.cu").read_text(encoding="utf-8")


def run(
    name: str, sizes: tuple[int, int, int], text: str | None = None, seed: int = 1, limit_s: float = 30
) -> Fault | None:
    """Run a kernel, or `text` in its place, on drawn inputs of M, N, K; return what is wrong."""
    kernel = HANDMADE[name]
    named = dict(zip("MNK", sizes))
    text = source_of(name) if text is None else text
    plan = LaunchPlan(Shape(tuple(named.items())), kernel.launches(named), kernel.workspaces(named))
    lowered = Lowered("cuda", "sm_90a", with_prelude(text), (), (plan,))
    inputs, right = _drawn(kernel.sums, *sizes)
    found = emulate(lowered, plan.shape, inputs, {"y": np.empty(right.shape, np.float32)}, seed, limit_s)
    if isinstance(found, Fault):
        return found
    error = np.abs(found["y"].astype(np.float64) - right)
    bad = ~(error <= 1e-4)
    return Fault("wrong answer", f"y is off by {error.max()}") if bad.any() else None


def _drawn(sums: str, m: int, n: int, k: int) -> tuple[dict[str, Array], npt.NDArray[np.float64]]:
    random = np.random.default_rng(m * n * k)
    if sums != "products":
        x = random.standard_normal((m, n), dtype=np.float32)
        return {"x": x}, x.astype(np.float64).sum(axis=1) if sums == "rows" else 2 * x.astype(np.float64).sum(axis=0)
    a, b = random.standard_normal((m, k), dtype=np.float32), random.standard_normal((k, n), dtype=np.float32)
    bias = random.standard_normal(n, dtype=np.float32)
    return {"a": a, "b": b, "bias": bias}, np.maximum(a.astype(np.float64) @ b.astype(np.float64) + bias, 0)
