"""A binary loaded for running, and one shape's memory: inputs shared by both arms, the rest apart."""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cake_tui.backends._element import Element
from cake_tui.backends._inputs import DTYPES
from cake_tui.backends.cpu.memory import Array, Buffer, Layout
from cake_tui.backends.cpu.runtime import MAX_ARGUMENTS, CLaunch, Ran, Runtime, Touch
from cake_tui.errors import Ended
from cake_tui.ir.families import dimensions, inputs_of, outputs_of
from cake_tui.model.jobs import Subject, binary_path
from cake_tui.model.lowered import Argument, Launch, LaunchPlan
from cake_tui.model.outcome import LaunchFailed
from cake_tui.model.problem import BufferSpec, Problem, Shape

INT_LIMIT = 2**31 - 1
TASK_LIMIT = 2**32 - 2
KEPT_LIBRARIES = 64


def failed(reason: str, **limits: Any) -> Ended:
    """Return the ending of a kernel that cannot be launched."""
    return Ended(LaunchFailed(reason=reason, **limits))


class Libraries:
    """Loaded binaries by hash. The last few stay loaded: holder and candidates come back often."""

    def __init__(self, runtime: Runtime, store: Path) -> None:
        self.store = store
        self._runtime = runtime
        self._loaded: OrderedDict[str, ctypes.CDLL] = OrderedDict()

    def load(self, sha256: str) -> ctypes.CDLL:
        """Return the loaded binary; raises Ended(LaunchFailed) where the loader refuses it."""
        if sha256 in self._loaded:
            self._loaded.move_to_end(sha256)
            return self._loaded[sha256]
        path = binary_path(self.store, sha256)
        try:
            with self._runtime.limited():
                library = ctypes.CDLL(str(path), mode=ctypes.DEFAULT_MODE)
        except OSError as error:
            reason = str(error).replace(str(path), sha256[:12])
            raise failed(f"the loader refuses the binary: {reason}") from None
        self._loaded[sha256] = library
        while len(self._loaded) > KEPT_LIBRARIES:
            self._loaded.popitem(last=False)
        return library


class Inputs:
    """The input buffers of one shape."""

    def __init__(self, runtime: Runtime, problem: Problem, shape: Shape, layout: Layout, align: int) -> None:
        self.buffers = {
            spec.name: Buffer(runtime, spec.name, _dtype(spec), dimensions(spec, shape), layout, align)
            for spec in inputs_of(problem)
            if spec.role == "in"
        }

    def fill(self, arrays: Mapping[str, Array]) -> None:
        """Copy the values in."""
        for name, buffer in self.buffers.items():
            buffer.array[...] = arrays[name]

    def free(self) -> None:
        """Give the memory back."""
        for buffer in self.buffers.values():
            buffer.free()


def touch(element: Element, inputs: Inputs, last: int = 0) -> Touch:
    """Return an element that changes at its address in these inputs; after a batch it has pattern `last`."""
    return Touch(inputs.buffers[element.name].address + 4 * element.index, element.in_turn(last))


class Arm:
    """One subject at one shape: its launches over shared inputs and outputs and workspaces of its own."""

    def __init__(
        self, runtime: Runtime, library: ctypes.CDLL, subject: Subject, problem: Problem, shape: Shape, inputs: Inputs,
        layout: Layout, align: int,
    ) -> None:  # fmt: skip
        self.runtime = runtime
        self.problem = problem
        plan = _plan(subject, shape)
        self.inputs = inputs
        self.outputs = {
            spec.name: Buffer(runtime, spec.name, _dtype(spec), dimensions(spec, shape), layout, align)
            for spec in outputs_of(problem)
        }
        self.workspaces = {
            space.name: Buffer(runtime, space.name, "u1", (space.size_bytes,), "guarded", space.align_bytes)
            for space in plan.workspaces
        }
        self.launches = [self._launch(library, launch, shape) for launch in plan.launches]
        if not self.launches:
            raise failed("the launch plan is empty")

    @property
    def buffers(self) -> list[Buffer]:
        """All buffers that the kernel sees."""
        return [*self.inputs.buffers.values(), *self.outputs.values(), *self.workspaces.values()]

    def poison(self, which: int, inouts: Mapping[str, Array]) -> None:
        """Poison outputs and workspaces; buffers of role inout get their input values."""
        for name, buffer in self.outputs.items():
            if name in inouts:
                buffer.array[...] = inouts[name]
            else:
                buffer.poison(which)
        for buffer in self.workspaces.values():
            buffer.poison(which)

    def run(self, repeats: int = 1, touch: Touch | None = None, backward: bool = False, cold: bool = False) -> Ran:
        """Run the launches; `cold` drops every buffer from the caches before each repeat."""
        flush = [(buffer.address, buffer.bytes) for buffer in self.buffers] if cold else []
        return self.runtime.run(self.launches, repeats, touch, backward, flush)

    def free(self) -> None:
        """Give outputs and workspaces back; the inputs belong to both arms."""
        for buffer in (*self.outputs.values(), *self.workspaces.values()):
            buffer.free()

    def _launch(self, library: ctypes.CDLL, launch: Launch, shape: Shape) -> CLaunch:
        """Turn a planned launch into the runtime's; raises Ended(LaunchFailed) naming the limit."""
        try:
            entry = getattr(library, launch.entry)
        except (AttributeError, ValueError):
            raise failed(f"the binary has no symbol {launch.entry}") from None
        if len(launch.arguments) > MAX_ARGUMENTS:
            raise failed(
                f"{launch.entry}: {len(launch.arguments)} arguments > {MAX_ARGUMENTS}", limit="arguments",
                asked=len(launch.arguments), available=MAX_ARGUMENTS, unit="arguments",
            )  # fmt: skip
        for axis, count in zip("xyz", launch.grid):
            if not 1 <= count <= INT_LIMIT:
                raise failed(
                    f"{launch.entry}: grid.{axis} {count} is not in 1..{INT_LIMIT}", limit=f"grid.{axis}", asked=count,
                    available=INT_LIMIT, unit="tasks",
                )  # fmt: skip
        tasks = launch.grid[0] * launch.grid[1] * launch.grid[2]
        if tasks > TASK_LIMIT:
            raise failed(
                f"{launch.entry}: {tasks} tasks > {TASK_LIMIT}", limit="grid", asked=tasks, available=TASK_LIMIT,
                unit="tasks",
            )  # fmt: skip
        words = [self._argument(launch.entry, argument, shape) for argument in launch.arguments]
        return CLaunch(
            entry=ctypes.cast(entry, ctypes.c_void_p).value, grid=(ctypes.c_int32 * 3)(*launch.grid),
            arguments=len(words), argument=(ctypes.c_size_t * MAX_ARGUMENTS)(*words),
        )  # fmt: skip

    def _argument(self, entry: str, argument: Argument, shape: Shape) -> int:
        """Return the 8-byte word for one argument."""
        match argument.kind:
            case "size":
                value = dict(shape.sizes).get(argument.name)
                if value is None:
                    raise failed(f"{entry}: no size {argument.name}")
                if not 0 <= value <= INT_LIMIT:
                    raise failed(
                        f"{entry}: int {argument.name} = {value} is not in 0..{INT_LIMIT}", limit=argument.name,
                        asked=value, available=INT_LIMIT, unit="int",
                    )  # fmt: skip
                return value
            case "buffer":
                found = self.outputs.get(argument.name) or self.inputs.buffers.get(argument.name)
            case "workspace":
                found = self.workspaces.get(argument.name)
            case _:
                raise failed(f"{entry}: {argument.kind} {argument.name}: the CPU has none")
        if found is None:
            raise failed(f"{entry}: no {argument.kind} {argument.name}")
        return found.address


def _dtype(spec: BufferSpec) -> str:
    """Return numpy's name of a buffer's type; raises Ended(LaunchFailed) for one that C kernels here lack."""
    if spec.dtype not in DTYPES:
        raise failed(f"buffer {spec.name}: dtype {spec.dtype} is not served here")
    return str(np.dtype(DTYPES[spec.dtype]).str)


def _plan(subject: Subject, shape: Shape) -> LaunchPlan:
    try:
        return subject.lowered.plan(shape)
    except KeyError:
        raise failed(f"the build has no launch plan for {shape.text}") from None
