"""A problem: kernel, dtypes, shapes and ranking, cache state, precision, tolerance and input seed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Literal, get_args

import msgspec

from cake_tui.model.device import Target
from cake_tui.model.schedule import Knob

Family = Literal["contraction", "reduction", "elementwise"]
Role = Literal["in", "out", "inout"]
Combine = Literal["", "add", "max", "min"]
COMBINES: tuple[str, ...] = get_args(Combine)[1:]
ACC = "acc"  # in `value`: the sum of a contraction, what a reduction has combined


class Shape(msgspec.Struct, frozen=True, order=True):
    """One set of sizes, in the order the kernel declares them: ``(("M", 512), ("N", 512), ("K", 512))``."""

    sizes: tuple[tuple[str, int], ...]

    def __getitem__(self, name: str) -> int:
        """Return one size; raises KeyError for a name the kernel does not declare."""
        for key, value in self.sizes:
            if key == name:
                return value
        raise KeyError(name)

    @property
    def text(self) -> str:
        """``M=512,N=512,K=512``, as the command line takes it."""
        return ",".join(f"{name}={value}" for name, value in self.sizes)


class BufferSpec(msgspec.Struct, frozen=True):
    """One parameter of the kernel. `shape` holds expressions over the sizes; `scale` one over them too."""

    name: str
    dtype: str
    shape: tuple[str, ...]
    fill: str = "normal"
    scale: str = "1"
    role: Role = "in"


class Template(msgspec.Struct, frozen=True):
    """A user's own kernel file with knobs: source text, constraints and launch expressions.

    The source sees each knob and, in the full build, each size as a macro of that name.
    """

    source: str
    target: Target
    entry: str
    knobs: tuple[Knob, ...]
    require: tuple[str, ...] = ()
    grid: tuple[str, ...] = ("1",)
    block: tuple[str, ...] = ("1",)
    smem_bytes: str = "0"


class Problem(msgspec.Struct, frozen=True, cache_hash=True):
    """Everything that says what is computed and how candidates are ranked. JSON-encodable, no paths."""

    kernel: str
    family: Family | None
    value: str
    buffers: tuple[BufferSpec, ...]
    shapes: tuple[Shape, ...]
    ranking: Literal["last", "mean", "geom"] = "last"
    cache: Literal["warm", "cold"] = "warm"
    accumulation: Literal["ordered", "blocked", "any"] = "blocked"
    precision: Literal["fp32", "strict"] = "fp32"
    tolerance_abs: float = 5e-5
    tolerance_units: float = 192.0
    minimum_work: str = "0"
    peers: tuple[str, ...] = ()
    seed: int = 0
    # Source text of reference(xp, **buffers) -> (out, S); None where `value` alone gives it; "first" is
    # kept by `reference_is_first`.
    reference: str | None = None
    reference_is_first: bool = False
    template: Template | None = None
    map: str = ""  # of a reduction: what is combined along a row
    combine: Combine = ""  # of a reduction

    @property
    def size_names(self) -> tuple[str, ...]:
        """Names of the sizes, in the order the kernel declares them."""
        return tuple(name for name, _ in self.shapes[0].sizes)

    def ranked(self, values: Sequence[float]) -> float:
        """Combine one value a shape, times or their like, as the ranking does."""
        match self.ranking:
            case "last":
                return values[-1]
            case "mean":
                return statistics.fmean(values)
            case "geom":
                return math.exp(statistics.fmean(math.log(max(value, 1e-9)) for value in values))
