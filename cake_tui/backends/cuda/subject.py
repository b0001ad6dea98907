"""A binary loaded for running, and one shape's memory: inputs shared by both arms, the rest apart."""

from __future__ import annotations

import ctypes
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cake_tui.backends.cuda.driver import CudaError, Driver
from cake_tui.backends.cuda.memory import DTYPE_BYTES, LINE_BYTES, Buffer, Memory
from cake_tui.backends.cuda.plan import Limits, failed, prepare
from cake_tui.backends.cuda.probes import Probes
from cake_tui.ir.families import dimensions, inputs_of, outputs_of
from cake_tui.model.jobs import Subject, binary_path
from cake_tui.model.lowered import LaunchPlan
from cake_tui.model.problem import BufferSpec, Problem, Shape

Array = npt.NDArray[Any]
KEPT_MODULES = 32
POLL_S = 20e-6
SPIN_S = 0.002  # so long the host looks without a rest: short samples end within it


class Hung(Exception):
    """A run outlived its limit; the process is of no use any more."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"a run took longer than {limit_s:g} s")
        self.limit_s = limit_s


class Gpu:
    """What one evaluator has of the device: driver, stream, probes, memory and loaded binaries."""

    def __init__(self, driver: Driver, device: int, arch: str, store: Path) -> None:
        self.driver = driver
        self.limits = Limits(driver, device)
        sms = driver.attribute(device, "sms")
        self.l2_bytes = driver.attribute(device, "l2_bytes")
        self.stream = driver.stream()
        self.second_stream = driver.stream()
        self.probes = Probes(driver, arch, sms, self.stream)
        self.memory = Memory(driver, self.probes)
        self.store = store
        self.arm: Literal["candidate", "holder"] = "candidate"  # whose launches are on the stream
        self.on_hang: Callable[[Hung], None] | None = None  # ends the process: nothing may wait for the device again
        self._loaded: OrderedDict[str, int] = OrderedDict()
        self._events: list[int] = []
        self.events_taken = 0  # of those, by batches on the stream
        self._end = driver.event()

    def module(self, sha256: str) -> int:
        """Return a loaded binary; raises Ended(LaunchFailed) where the driver refuses it."""
        if sha256 in self._loaded:
            self._loaded.move_to_end(sha256)
            return self._loaded[sha256]
        try:
            module = self.driver.load(binary_path(self.store, sha256).read_bytes())
        except CudaError as error:
            if error.sticky:
                raise
            raise failed(f"the driver refuses the binary: {error}") from None
        except OSError as error:
            raise failed(f"the binary is not there: {error.strerror}") from None
        self._loaded[sha256] = module
        while len(self._loaded) > KEPT_MODULES:
            self.driver.unload(self._loaded.popitem(last=False)[1])
        return module

    def forget(self, sha256: str) -> None:
        """Unload a binary."""
        if sha256 in self._loaded:
            self.driver.unload(self._loaded.pop(sha256))

    def events(self, count: int) -> list[int]:
        """Return so many events, the same ones each time."""
        while len(self._events) < count:
            self._events.append(self.driver.event())
        return self._events[:count]

    def finish(self, limit_s: float, before_end: Callable[[], None] | None = None) -> None:
        """Wait until all on the stream has run; raises Hung after `limit_s`, CudaError for what failed.

        `before_end` is called where a run hangs, before the process ends.
        """
        self.driver.record(self._end, self.stream)
        began = time.monotonic()
        while not self.driver.reached(self._end):
            spent = time.monotonic() - began
            if spent > limit_s:
                if before_end is not None:
                    before_end()
                hung = Hung(limit_s)
                if self.on_hang is not None:
                    self.on_hang(hung)
                raise hung
            if spent > SPIN_S:
                time.sleep(POLL_S * 10)

    def upload(self, array: Array, address: int) -> None:
        """Copy a host array to the device."""
        whole = np.ascontiguousarray(array)
        self.driver.upload(address, whole.ctypes.data, whole.nbytes, self.stream)
        self.driver.synchronize(self.stream)

    def download(self, address: int, size: int) -> bytes:
        """Copy device memory to the host."""
        room = ctypes.create_string_buffer(max(size, 1))
        self.driver.download(ctypes.addressof(room), address, size, self.stream)
        self.driver.synchronize(self.stream)
        return room.raw[:size]


class Inputs:
    """The input buffers of one shape, at new addresses; `masters` holds where each one's values lie."""

    def __init__(
        self, gpu: Gpu, problem: Problem, shape: Shape, masters: Mapping[str, int], *, align: int = LINE_BYTES,
        offset: Callable[[], int] = lambda: 0,
    ) -> None:  # fmt: skip
        self.masters = masters
        self.buffers: dict[str, Buffer] = {}
        try:
            for spec in inputs_of(problem):
                if spec.role == "in":
                    made = _buffer(gpu, spec, shape, align, offset())
                    self.buffers[spec.name] = made
                    made.copy_from(masters[spec.name])
        except BaseException:
            self.free()
            raise

    def refill(self) -> None:
        """Copy the values in again."""
        for name, buffer in self.buffers.items():
            buffer.copy_from(self.masters[name])

    def free(self) -> None:
        """Give the memory back."""
        for buffer in self.buffers.values():
            buffer.free()
        self.buffers.clear()


class Arm:
    """One subject at one shape: its launches over shared inputs and outputs and workspaces of its own."""

    def __init__(
        self, gpu: Gpu, subject: Subject, problem: Problem, shape: Shape, inputs: Inputs, *,
        align: int = LINE_BYTES, offset: Callable[[], int] = lambda: 0,
    ) -> None:  # fmt: skip
        self.gpu = gpu
        self.inputs = inputs
        plan = _plan(subject, shape)
        self.outputs: dict[str, Buffer] = {}
        self.workspaces: dict[str, Buffer] = {}
        try:
            for spec in outputs_of(problem):
                self.outputs[spec.name] = _buffer(gpu, spec, shape, align, offset())
            for space in plan.workspaces:
                self.workspaces[space.name] = Buffer(
                    gpu.memory, space.name, "u8", (space.size_bytes,), align=max(space.align_bytes, LINE_BYTES),
                    offset=offset(),
                )  # fmt: skip
            addresses = {name: buffer.address for name, buffer in self.named()}
            module = gpu.module(subject.binary_sha256)
            self.launches = prepare(gpu.driver, gpu.limits, module, plan, addresses)
        except BaseException:
            self.free()
            raise

    def named(self) -> list[tuple[str, Buffer]]:
        """Return all buffers that the kernel sees, by name."""
        return [*self.inputs.buffers.items(), *self.outputs.items(), *self.workspaces.items()]

    def poison(self, which: int) -> None:
        """Poison outputs and workspaces; a buffer that is read and written gets its input values."""
        for name, buffer in (*self.outputs.items(), *self.workspaces.items()):
            if name in self.inputs.masters:
                buffer.copy_from(self.inputs.masters[name])
            else:
                buffer.poison(which)

    def put(self) -> None:
        """Put one run on the stream; raises Ended(LaunchFailed) where the driver refuses it."""
        for launch in self.launches:
            try:
                launch.put(self.gpu.stream)
            except CudaError as error:
                if error.sticky:
                    raise
                raise failed(f"the driver refuses the launch: {error}") from None

    def free(self) -> None:
        """Give outputs and workspaces back; the inputs belong to both arms."""
        for buffer in (*self.outputs.values(), *self.workspaces.values()):
            buffer.free()
        self.outputs.clear()
        self.workspaces.clear()


def _buffer(gpu: Gpu, spec: BufferSpec, shape: Shape, align: int, offset: int) -> Buffer:
    """Return a buffer for a parameter; raises Ended(LaunchFailed) for a type that is not served or no memory."""
    if spec.dtype not in DTYPE_BYTES:
        raise failed(f"buffer {spec.name}: dtype {spec.dtype} is not served here")
    size = dimensions(spec, shape)
    return Buffer(gpu.memory, spec.name, spec.dtype, size, align=max(align, DTYPE_BYTES[spec.dtype]), offset=offset)


def _plan(subject: Subject, shape: Shape) -> LaunchPlan:
    try:
        return subject.lowered.plan(shape)
    except KeyError:
        raise failed(f"the build has no launch plan for {shape.text}") from None
