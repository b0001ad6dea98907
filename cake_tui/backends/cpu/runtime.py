"""The runtime's Python face: compiles `runtime.c` and `watch.c` once per compiler, calls them through ctypes."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from cake_tui.backends.cpu.compilers import find_compiler, runtime_command, version
from cake_tui.backends.cpu.device import core_processors
from cake_tui.config import cache_dir, child_environment
from cake_tui.errors import ENVIRONMENT, UserError

SOURCES = (Path(__file__).with_name("runtime.c"), Path(__file__).with_name("watch.c"))
MAX_ARGUMENTS = 24
RATE_ADDS = 1 << 19  # about an eighth of a millisecond
RATE_LOOPS = 8


class CLaunch(ctypes.Structure):
    """`struct cake_launch`."""

    _fields_ = [
        ("entry", ctypes.c_void_p),
        ("grid", ctypes.c_int32 * 3),
        ("arguments", ctypes.c_int32),
        ("argument", ctypes.c_size_t * MAX_ARGUMENTS),
    ]


class _CBatch(ctypes.Structure):
    """`struct cake_batch`."""

    _fields_ = [
        ("launches", ctypes.POINTER(CLaunch)),
        ("launch_count", ctypes.c_int32),
        ("repeats", ctypes.c_int32),
        ("touch", ctypes.c_void_p),
        ("touch_bits", ctypes.POINTER(ctypes.c_uint32)),
        ("touch_count", ctypes.c_int32),
        ("backward", ctypes.c_int32),
        ("flush", ctypes.POINTER(ctypes.c_void_p)),
        ("flush_bytes", ctypes.POINTER(ctypes.c_uint64)),
        ("flush_count", ctypes.c_int32),
        ("state_changed", ctypes.c_int32),
        ("ns", ctypes.c_int64),
        ("busy_max_ns", ctypes.c_int64),
        ("busy_mean_ns", ctypes.c_int64),
    ]


class Ran(msgspec.Struct, frozen=True):
    """One batch: its time, the busiest and the mean thread's time, and whether rounding modes came back changed."""

    ns: int
    busy_max_ns: int
    busy_mean_ns: int
    state_changed: bool


class Touch(msgspec.Struct, frozen=True):
    """One 4-byte input element that changes before each repeat and ends with the first of `bits`, however many."""

    address: int
    bits: tuple[int, ...]


class Runtime:
    """The loaded C library with its pool of `threads` threads; one a process."""

    def __init__(self, threads: int) -> None:
        self.library = ctypes.CDLL(str(compiled(SOURCES, runtime_command(find_compiler()))))
        self._declare()
        self.threads = threads
        self.run_limit_s = 0.0  # of one run; 0: none
        self.batch_limit_s = 0.0  # on top of that for a batch of several
        error = self.library.cake_start(threads)
        if error:
            raise UserError(f"{threads} threads: {os.strerror(abs(error))}; set `threads` lower", ENVIRONMENT)

    def run(
        self, launches: Sequence[CLaunch], repeats: int = 1, touch: Touch | None = None, backward: bool = False,
        flush: Sequence[tuple[int, int]] = (),
    ) -> Ran:  # fmt: skip
        """Run the launches in order, `repeats` times; `flush` lists (address, bytes) to drop from the caches."""
        batch = _CBatch(
            launches=(CLaunch * len(launches))(*launches),
            launch_count=len(launches), repeats=repeats, backward=backward, flush_count=len(flush),
        )  # fmt: skip
        if touch is not None:
            batch.touch = touch.address
            batch.touch_bits = (ctypes.c_uint32 * len(touch.bits))(*touch.bits)
            batch.touch_count = len(touch.bits)
        if flush:
            batch.flush = (ctypes.c_void_p * len(flush))(*(address for address, _ in flush))
            batch.flush_bytes = (ctypes.c_uint64 * len(flush))(*(size for _, size in flush))
        limit_s = self.run_limit_s + (self.batch_limit_s if repeats > 1 else 0.0)
        self.library.cake_run_limited(ctypes.byref(batch), int(limit_s * 1e9))
        return Ran(batch.ns, batch.busy_max_ns, batch.busy_mean_ns, bool(batch.state_changed))

    @contextlib.contextmanager
    def limited(self) -> Iterator[None]:
        """End this process where what is done inside outlives the limit of one run: loading runs code too."""
        self.library.cake_limit_begin(int(self.run_limit_s * 1e9))
        try:
            yield
        finally:
            self.library.cake_limit_end()

    def rate(self) -> float:
        """Return dependent additions a nanosecond: the fastest of eight loops, about a millisecond together.

        A loop that lost the processor for a while is slow without the clock being slow; load shows elsewhere.
        """
        return RATE_ADDS / max(min(int(self.library.cake_rate(RATE_ADDS)) for _ in range(RATE_LOOPS)), 1)

    @contextlib.contextmanager
    def pinned(self) -> Iterator[None]:
        """Give each thread of the pool a core of its own meanwhile; without effect where it does not use all cores."""
        processors = core_processors()
        if len(processors) != self.threads:
            yield
            return
        self.library.cake_pin((ctypes.c_int32 * len(processors))(*processors))
        try:
            yield
        finally:
            self.library.cake_pin(None)

    def asleep(self) -> bool:
        """Say whether all threads of the pool sleep, as they do a tenth of a millisecond after a run."""
        return bool(self.library.cake_asleep())

    def erf(self, values: Any) -> Any:
        """Return the error function of an array, in float64."""
        import numpy as np

        found = np.array(values, dtype=np.float64, order="C")
        self.library.cake_erf(found.ctypes.data, found.size)
        return found

    def map(self, size: int) -> int:
        """Return the address of `size` bytes (whole pages) between two unreadable pages; raises MemoryError."""
        address = self.library.cake_map(size)
        if not address:
            raise MemoryError(f"{size} bytes")
        return int(address)

    def unmap(self, address: int, size: int) -> None:
        """Give pages of `map` back."""
        self.library.cake_unmap(address, size)

    def _declare(self) -> None:
        """Name types where ctypes' default (int) is wrong."""
        library = self.library
        for name in ("cake_float_state", "cake_handlers", "cake_environment", "cake_heap_bytes"):
            getattr(library, name).restype = ctypes.c_uint64
        library.cake_map.restype = ctypes.c_void_p
        library.cake_map.argtypes = [ctypes.c_uint64]
        library.cake_unmap.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
        library.cake_rate.restype = ctypes.c_int64
        library.cake_rate.argtypes = [ctypes.c_uint64]
        library.cake_run_limited.argtypes = [ctypes.POINTER(_CBatch), ctypes.c_int64]
        library.cake_run_limited.restype = None
        library.cake_limit_begin.argtypes = [ctypes.c_int64]
        library.cake_limit_begin.restype = library.cake_limit_end.restype = None
        library.cake_name_region.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_char_p]
        library.cake_pin.argtypes = [ctypes.POINTER(ctypes.c_int32)]
        library.cake_pin.restype = None
        library.cake_erf.argtypes = [ctypes.c_void_p, ctypes.c_uint64]


def compiled(sources: Sequence[Path], command: tuple[str, ...]) -> Path:
    """Return what `command`, completed by ``-o OUTPUT SOURCES``, makes; from the cache where it was made before.

    Raises UserError (ENVIRONMENT) where it cannot be made or kept.
    """
    name = version(find_compiler())
    identity = hashlib.sha256(b"".join(path.read_bytes() for path in sources) + "\0".join((*command, name)).encode())
    folder, stem = cache_dir(), sources[0].stem
    target = folder / f"{stem}-{identity.hexdigest()[:32]}.so"
    if target.is_file():
        return target
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(prefix=f"{stem}-", suffix=".tmp", dir=folder)
    except OSError as error:
        raise UserError(f"cache folder {folder}: {error.strerror}; set XDG_CACHE_HOME", ENVIRONMENT) from None
    os.close(handle)
    try:
        done = subprocess.run(
            [*command, "-o", scratch, *map(str, sources), "-lm"], capture_output=True, timeout=120, check=False,
            env=child_environment(LC_ALL="C"),
        )  # fmt: skip
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            raise UserError(f"{name} cannot compile {sources[0].name}: {said[0] if said else ''}", ENVIRONMENT)
        Path(scratch).rename(target)
    finally:
        Path(scratch).unlink(missing_ok=True)
    return target
