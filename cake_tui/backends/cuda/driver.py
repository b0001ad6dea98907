"""NVIDIA's driver through ctypes: contexts, modules, launches, events, graphs, memory and tensor maps; no CuPy.

Every call that fails raises `CudaError` with the driver's own name for it. Addresses and handles are plain ints.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_char_p, c_float, c_int, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from typing import Any, Literal

LIBRARY = "libcuda.so.1"

# After one of these every later call in the process fails the same way: only a new process helps.
STICKY = frozenset({700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 999})
# The device itself is gone or unusable: no process of ours can work until somebody mends it.
DEVICE_GONE = frozenset({46, 100, 101, 214, 220, 226, 802, 803})
NOT_READY = 600

ATTRIBUTES = {
    "threads_per_block": 1, "warp_size": 10, "clock_khz": 13, "grid_x": 5, "grid_y": 6, "grid_z": 7,
    "block_x": 2, "block_y": 3, "block_z": 4, "sms": 16, "l2_bytes": 38, "memory_khz": 36, "memory_bus_bits": 37,
    "threads_per_sm": 39, "major": 75, "minor": 76, "smem_per_sm_bytes": 81, "registers_per_sm": 82,
    "smem_per_block_bytes": 97, "blocks_per_sm": 106,
}  # fmt: skip

FunctionAttribute = Literal["threads_per_block", "smem_static_bytes", "local_bytes", "registers"]
_FUNCTION_ATTRIBUTES: dict[FunctionAttribute, int] = {
    "threads_per_block": 0, "smem_static_bytes": 1, "local_bytes": 3, "registers": 4,
}  # fmt: skip
_MAX_DYNAMIC_SMEM, _NON_PORTABLE_CLUSTER = 8, 14
_CLUSTER_DIMENSION = 4
_PORTABLE_CLUSTER = 8

_PORTABLE, _DEVICE_MAPPED = 1, 2
_TENSOR_DTYPES = {"u8": 0, "i32": 3, "f16": 6, "f32": 7, "f64": 8, "bf16": 9, "tf32": 11}
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_L2_PROMOTION_128 = 2
TENSOR_MAP_BYTES = 128


class CudaError(Exception):
    """A driver call failed; `name` is the driver's name of the error, `call` what was asked."""

    def __init__(self, code: int, name: str, text: str, call: str) -> None:
        super().__init__(f"{name} ({code}): {text}")
        self.code, self.name, self.text, self.call = code, name, text, call

    @property
    def sticky(self) -> bool:
        """Say whether the process is of no use any more."""
        return self.code in STICKY or self.device_gone

    @property
    def device_gone(self) -> bool:
        """Say whether the device itself is gone."""
        return self.code in DEVICE_GONE


class _LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", c_int), ("pad", c_int), ("value", c_uint32 * 16)]


class _LaunchConfig(ctypes.Structure):
    _fields_ = [
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("smem_bytes", c_uint),
        ("stream", c_void_p),
        ("attributes", ctypes.POINTER(_LaunchAttribute)),
        ("attribute_count", c_uint),
    ]


class Driver:
    """The loaded driver; raises OSError where there is none. `current` makes a device's primary context current.

    A `quiet` one never asks what may be refused: tools that watch the process would report that.
    """

    def __init__(self, library: str = LIBRARY, *, quiet: bool = False) -> None:
        self._library = ctypes.CDLL(library)
        self._quiet = quiet
        self._library.cuGetErrorName.argtypes = [c_int, ctypes.POINTER(c_char_p)]
        self._library.cuGetErrorString.argtypes = [c_int, ctypes.POINTER(c_char_p)]
        self.call("cuInit", c_uint(0))

    def call(self, name: str, *arguments: Any) -> None:
        """Call one function of the driver; raises CudaError."""
        code = getattr(self._library, name)(*arguments)
        if code:
            raise self.error(code, name)

    def error(self, code: int, call: str) -> CudaError:
        """Return an error with the driver's words for it."""
        name, text = c_char_p(), c_char_p()
        self._library.cuGetErrorName(code, ctypes.byref(name))
        self._library.cuGetErrorString(code, ctypes.byref(text))
        known = (name.value or b"CUDA_ERROR").decode(), (text.value or b"no words for it").decode()
        return CudaError(code, *known, call)

    def has(self, name: str) -> bool:
        """Say whether this driver has a function."""
        return hasattr(self._library, name)

    # --- devices ----------------------------------------------------------------------------------------

    def version(self) -> int:
        """Return the newest CUDA version that the driver serves, 13000 for 13.0."""
        found = c_int()
        self.call("cuDriverGetVersion", ctypes.byref(found))
        return found.value

    def uuids(self) -> list[str]:
        """Return the UUID of every visible device, in CUDA's order, as NVML spells them."""
        count = c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        return [self.uuid(self._device(ordinal)) for ordinal in range(count.value)]

    def uuid(self, device: int) -> str:
        """Return ``GPU-`` (``MIG-`` for an instance) and 32 hexadecimal digits in groups."""
        raw = (ctypes.c_ubyte * 16)()
        self.call("cuDeviceGetUuid_v2" if self.has("cuDeviceGetUuid_v2") else "cuDeviceGetUuid", raw, c_int(device))
        digits = bytes(raw).hex()
        parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
        return ("MIG-" if " MIG " in self.name(device) else "GPU-") + "-".join(parts)

    def name(self, device: int) -> str:
        """Return the device's name."""
        raw = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", raw, c_int(len(raw)), c_int(device))
        return raw.value.decode(errors="replace")

    def attribute(self, device: int, name: str) -> int:
        """Return one of `ATTRIBUTES` of a device."""
        found = c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(found), c_int(ATTRIBUTES[name]), c_int(device))
        return found.value

    def find(self, uuid: str) -> int:
        """Return the device with this UUID; raises LookupError naming those that are visible."""
        found = self.uuids()
        if uuid not in found:
            raise LookupError(f"no device {uuid}; visible: {', '.join(found) or 'none'}")
        return self._device(found.index(uuid))

    def current(self, device: int) -> None:
        """Make the device's primary context current in this thread; creates it where there is none."""
        context = c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), c_int(device))
        self.call("cuCtxSetCurrent", context)

    def _device(self, ordinal: int) -> int:
        found = c_int()
        self.call("cuDeviceGet", ctypes.byref(found), c_int(ordinal))
        return found.value

    # --- memory -----------------------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        """Return the address of `size` bytes of device memory, aligned to 256."""
        address = c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), c_size_t(max(size, 1)))
        return address.value

    def free(self, address: int) -> None:
        """Give memory of `allocate` back; waits for what runs."""
        self.call("cuMemFree_v2", c_uint64(address))

    def host_memory(self, size: int) -> int:
        """Return the address of `size` bytes of host memory that the device reaches too, at the same address."""
        address = c_void_p()
        self.call("cuMemHostAlloc", ctypes.byref(address), c_size_t(size), c_uint(_PORTABLE | _DEVICE_MAPPED))
        return int(address.value or 0)

    def free_and_total(self) -> tuple[int, int]:
        """Return the device's free and whole memory, bytes."""
        free, total = c_size_t(), c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def fill8(self, address: int, value: int, count: int, stream: int) -> None:
        """Set bytes."""
        self.call("cuMemsetD8Async", c_uint64(address), ctypes.c_ubyte(value), c_size_t(count), c_void_p(stream))

    def fill32(self, address: int, value: int, count: int, stream: int) -> None:
        """Set 4-byte words."""
        self.call("cuMemsetD32Async", c_uint64(address), c_uint(value), c_size_t(count), c_void_p(stream))

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        """Copy within the device."""
        self.call("cuMemcpyDtoDAsync_v2", c_uint64(target), c_uint64(source), c_size_t(size), c_void_p(stream))

    def upload(self, target: int, source: int, size: int, stream: int) -> None:
        """Copy from host memory at address `source`."""
        self.call("cuMemcpyHtoDAsync_v2", c_uint64(target), c_void_p(source), c_size_t(size), c_void_p(stream))

    def download(self, target: int, source: int, size: int, stream: int) -> None:
        """Copy to host memory at address `target`."""
        self.call("cuMemcpyDtoHAsync_v2", c_void_p(target), c_uint64(source), c_size_t(size), c_void_p(stream))

    # --- modules and launches -----------------------------------------------------------------------------

    def load(self, cubin: bytes) -> int:
        """Return a module."""
        module = c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), c_char_p(cubin))
        return int(module.value or 0)

    def unload(self, module: int) -> None:
        """Give a module's memory back."""
        self.call("cuModuleUnload", c_void_p(module))

    def function(self, module: int, name: str) -> int:
        """Return an entry of a module; raises CudaError (CUDA_ERROR_NOT_FOUND) for one that it lacks."""
        found = c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(found), c_void_p(module), c_char_p(name.encode()))
        return int(found.value or 0)

    def function_attribute(self, function: int, name: FunctionAttribute) -> int:
        """Return one attribute of a function."""
        found = c_int()
        attribute = c_int(_FUNCTION_ATTRIBUTES[name])
        self.call("cuFuncGetAttribute", ctypes.byref(found), attribute, c_void_p(function))
        return found.value

    def parameter_bytes(self, function: int) -> list[int] | None:
        """Return the size of each parameter of a function.

        None where the driver is too old to tell (before 12.4) or quiet: the end of the list shows in a refusal.
        """
        if self._quiet or not self.has("cuFuncGetParamInfo"):
            return None
        sizes: list[int] = []
        offset, size = c_size_t(), c_size_t()
        while True:
            at = c_size_t(len(sizes))
            code = self._library.cuFuncGetParamInfo(c_void_p(function), at, ctypes.byref(offset), ctypes.byref(size))
            if code:
                return sizes
            sizes.append(size.value)

    def allow(self, function: int, smem_bytes: int, cluster_size: int = 1) -> None:
        """Allow a function dynamic shared memory above 48 KB, and clusters of more than eight blocks."""
        if smem_bytes > 48 << 10:
            self.call("cuFuncSetAttribute", c_void_p(function), c_int(_MAX_DYNAMIC_SMEM), c_int(smem_bytes))
        if cluster_size > _PORTABLE_CLUSTER:
            self.call("cuFuncSetAttribute", c_void_p(function), c_int(_NON_PORTABLE_CLUSTER), c_int(1))

    def blocks_per_sm(self, function: int, threads: int, smem_bytes: int) -> int:
        """Return how many blocks of a function an SM holds at once."""
        found = c_int()
        self.call(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(found), c_void_p(function), c_int(threads),
            c_size_t(smem_bytes),
        )  # fmt: skip
        return found.value

    def synchronize(self, stream: int) -> None:
        """Wait for all that was put on a stream."""
        self.call("cuStreamSynchronize", c_void_p(stream))

    def stream(self) -> int:
        """Return a new stream of the highest priority that does not wait for the default one."""
        least, greatest, stream = c_int(), c_int(), c_void_p()
        self.call("cuCtxGetStreamPriorityRange", ctypes.byref(least), ctypes.byref(greatest))
        self.call("cuStreamCreateWithPriority", ctypes.byref(stream), c_uint(1), greatest)
        return int(stream.value or 0)

    # --- events and graphs --------------------------------------------------------------------------------

    def event(self) -> int:
        """Return a new event that takes the time."""
        event = c_void_p()
        self.call("cuEventCreate", ctypes.byref(event), c_uint(0))
        return int(event.value or 0)

    def record(self, event: int, stream: int) -> None:
        """Put an event on a stream."""
        self.call("cuEventRecord", c_void_p(event), c_void_p(stream))

    def reached(self, event: int) -> bool:
        """Say whether the device has passed an event; raises CudaError for what failed before it."""
        code = self._library.cuEventQuery(c_void_p(event))
        if code not in (0, NOT_READY):
            raise self.error(code, "cuEventQuery")
        return bool(code == 0)

    def elapsed_us(self, first: int, second: int) -> float:
        """Return microseconds between two events that were reached."""
        found = c_float()
        self.call("cuEventElapsedTime", ctypes.byref(found), c_void_p(first), c_void_p(second))
        return float(found.value) * 1e3

    def begin_capture(self, stream: int) -> None:
        """Have what is put on the stream recorded instead of run."""
        self.call("cuStreamBeginCapture_v2", c_void_p(stream), c_int(1))

    def end_capture(self, stream: int) -> int:
        """Return what was recorded, ready to run."""
        graph, ready = c_void_p(), c_void_p()
        self.call("cuStreamEndCapture", c_void_p(stream), ctypes.byref(graph))
        try:
            self.call("cuGraphInstantiateWithFlags", ctypes.byref(ready), graph, ctypes.c_ulonglong(0))
        finally:
            self.call("cuGraphDestroy", graph)
        return int(ready.value or 0)

    def prepare_graph(self, graph: int, stream: int) -> None:
        """Put a graph's description on the device, so that its first run is like all others."""
        self.call("cuGraphUpload", c_void_p(graph), c_void_p(stream))

    def run_graph(self, graph: int, stream: int) -> None:
        """Put a whole graph on a stream."""
        self.call("cuGraphLaunch", c_void_p(graph), c_void_p(stream))

    def forget_graph(self, graph: int) -> None:
        """Give a graph's memory back."""
        self.call("cuGraphExecDestroy", c_void_p(graph))


class PreparedLaunch:
    """One launch with its arguments in place, put on a stream as often as is wanted.

    `arguments` are ctypes values in the function's order: pointers as c_uint64, sizes as c_int, tensor maps as
    `TensorMap`. Raises CudaError where it is put on a stream and the driver refuses it.
    """

    def __init__(
        self, driver: Driver, function: int, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Any],
        smem_bytes: int = 0, cluster: Sequence[int] = (1, 1, 1),
    ) -> None:  # fmt: skip
        self._driver = driver
        self._function = c_void_p(function)
        self._kept = tuple(arguments)
        self._pointers = (c_void_p * max(len(arguments), 1))(*(ctypes.addressof(one) for one in arguments))
        self._attributes = (_LaunchAttribute * 1)()
        clustered = tuple(cluster) != (1, 1, 1)
        if clustered:
            self._attributes[0].id = _CLUSTER_DIMENSION
            for axis, count in enumerate(cluster):
                self._attributes[0].value[axis] = count
        self._config = _LaunchConfig(
            grid=(c_uint * 3)(*grid), block=(c_uint * 3)(*block), smem_bytes=smem_bytes,
            attributes=ctypes.cast(self._attributes, ctypes.POINTER(_LaunchAttribute)),
            attribute_count=1 if clustered else 0,
        )  # fmt: skip
        self._config_pointer = ctypes.byref(self._config)
        driver.allow(function, smem_bytes, cluster[0] * cluster[1] * cluster[2])

    def put(self, stream: int) -> None:
        """Put it on a stream."""
        self._config.stream = stream
        self._driver.call("cuLaunchKernelEx", self._config_pointer, self._function, self._pointers, None)


class TensorMap(ctypes.Structure):
    """A tensor map as a kernel takes it by value; `encode` fills it. Must lie at a multiple of 64 bytes."""

    _fields_ = [("words", c_uint64 * 16)]


def encode_tensor_map(
    driver: Driver, dtype: str, address: int, dims: Sequence[int], strides_bytes: Sequence[int], box: Sequence[int],
    swizzle_bytes: int,
) -> TensorMap:  # fmt: skip
    """Return the map of a tensor, axes innermost first; `strides_bytes` of all axes but the innermost.

    What lies outside reads as zero. Raises CudaError where the driver refuses the sizes, KeyError for a type or
    swizzle that tensor maps lack.
    """
    rank = len(dims)
    room = (ctypes.c_ubyte * (TENSOR_MAP_BYTES + 64))()
    made = TensorMap.from_buffer(room, -ctypes.addressof(room) % 64)
    driver.call(
        "cuTensorMapEncodeTiled", ctypes.byref(made), c_int(_TENSOR_DTYPES[dtype]), c_uint32(rank), c_uint64(address),
        (c_uint64 * rank)(*dims), (c_uint64 * max(rank - 1, 1))(*strides_bytes), (c_uint32 * rank)(*box),
        (c_uint32 * rank)(*[1] * rank), c_int(0), c_int(_SWIZZLES[swizzle_bytes]), c_int(_L2_PROMOTION_128), c_int(0),
    )  # fmt: skip
    return made
