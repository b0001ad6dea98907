"""The lowered value: source, compile options, exact architecture and launch plan; nobody parses a source."""

from __future__ import annotations

import hashlib
from typing import Literal

import msgspec

from cake_tui.model.device import Target
from cake_tui.model.problem import Shape


class Argument(msgspec.Struct, frozen=True):
    """One kernel argument, in order: a parameter buffer, a workspace, a run-time size or a tensor map."""

    kind: Literal["buffer", "workspace", "size", "tensor_map"]
    name: str


class TensorMap(msgspec.Struct, frozen=True):
    """What cuTensorMapEncodeTiled is asked for: a buffer cut into boxes, axes innermost first as the driver has them.

    `strides_bytes` leaves out the innermost axis, which is dense. Elements outside the buffer are read as zero and
    not written; element strides are 1, nothing is interleaved.
    """

    name: str  # the kernel argument's
    buffer: str
    dtype: str
    dims: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    box: tuple[int, ...]
    swizzle_bytes: Literal[0, 32, 64, 128] = 0


class Launch(msgspec.Struct, frozen=True):
    """One kernel launch. On ``c`` the grid is the number of tasks per axis and the block is 1.

    A ``c`` entry has the signature ``void entry(const int task[3], <arguments>)``: buffers and workspaces as
    pointers, sizes as ``int``; the pool calls it once a task, x fastest.

    A ``cuda`` entry is an ``extern "C" __global__`` function: buffers and workspaces as device pointers, sizes as
    ``int``, tensor maps by value (128 bytes). `smem_bytes` is dynamic shared memory, on top of what is static.
    """

    entry: str
    grid: tuple[int, int, int]
    arguments: tuple[Argument, ...]
    block: tuple[int, int, int] = (1, 1, 1)
    cluster: tuple[int, int, int] = (1, 1, 1)
    smem_bytes: int = 0
    tensor_maps: tuple[TensorMap, ...] = ()  # of the arguments of that kind, by name


class Workspace(msgspec.Struct, frozen=True):
    """Scratch memory that the evaluator gives and poisons before every run."""

    name: str
    size_bytes: int
    align_bytes: int = 64


class LaunchPlan(msgspec.Struct, frozen=True):
    """The ordered launches for one shape."""

    shape: Shape
    launches: tuple[Launch, ...]
    workspaces: tuple[Workspace, ...] = ()


class Lowered(msgspec.Struct, frozen=True):
    """Text for a target and how to run it, one plan a shape (several only with run-time sizes)."""

    target: Target
    arch: str
    source: str
    options: tuple[str, ...]
    plans: tuple[LaunchPlan, ...]
    # What the constants at the top of the source are; shown and exported, not part of the identity.
    structure: str = ""
    constants: tuple[tuple[str, int | bool | str], ...] = ()
    # Parameter pointers may be as little aligned as this many bytes (the contract's least alignment).
    align_bytes: int = 4

    @property
    def sha256(self) -> str:
        """Identity: equal source, options, architecture and plans are never evaluated twice."""
        identity = (self.target, self.arch, self.source, self.options, self.plans)
        return hashlib.sha256(msgspec.json.encode(identity)).hexdigest()

    def plan(self, shape: Shape) -> LaunchPlan:
        """Return the plan of `shape`; raises KeyError where this build does not serve it."""
        for plan in self.plans:
            if plan.shape == shape:
                return plan
        raise KeyError(shape.text)
