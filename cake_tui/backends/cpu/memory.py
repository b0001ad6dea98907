"""Buffers that tell on a kernel: guard bands on both sides, poison inside, unreadable pages around.

Two layouts: ``guarded`` puts a readable pattern behind the data, so that a write past the end is found and
named; ``edge`` ends the data at the unreadable page (within the alignment that the contract promises), so
that a read past the end faults.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cake_tui.backends.cpu.runtime import Runtime

Array = npt.NDArray[Any]
Layout = Literal["guarded", "edge"]

GUARD_BYTES = 4096
GUARD_WORD = 0x7FC5A5A5  # a NaN, so that what was read from a guard shows in a result
POISONS = (0x7FCDEAD1, 0xC0E8F5C3)  # a NaN with a payload; -7.28, which an accumulation onto it would change
LINE_BYTES = 64


class Buffer:
    """One buffer: `array` is the data in its shape, around it the guards."""

    def __init__(
        self, runtime: Runtime, name: str, dtype: str, shape: tuple[int, ...], layout: Layout, align: int
    ) -> None:
        self.name = name
        self._runtime = runtime
        kind = np.dtype(dtype)
        self.bytes = max(int(np.prod(shape, dtype=np.int64)), 1) * kind.itemsize
        front, back = GUARD_BYTES, GUARD_BYTES if layout == "guarded" else 0
        step = max(LINE_BYTES if layout == "guarded" else 4, align, kind.itemsize)
        self._mapped = -(-(front + self.bytes + step + back) // mmap.PAGESIZE) * mmap.PAGESIZE
        self._base = runtime.map(self._mapped)
        end = self._base + self._mapped - back
        self.address = (end - self.bytes) // step * step
        whole = np.frombuffer(memoryview((ctypes.c_char * self._mapped).from_address(self._base)), dtype=np.uint8)
        start = self.address - self._base
        self._front: Array = whole[:start]
        self._back: Array = whole[start + self.bytes :]
        data = whole[start : start + self.bytes]
        self.array: Array = data.view(kind)[: int(np.prod(shape, dtype=np.int64))].reshape(shape)
        self._words: Array = data[: self.bytes // 4 * 4].view(np.uint32)
        self._pattern_front = _pattern(self._front.size)
        self._pattern_back = _pattern(self._back.size)
        self._front[:] = self._pattern_front
        self._back[:] = self._pattern_back

    def poison(self, which: int) -> None:
        """Fill with poison 0 or 1."""
        self._words[:] = POISONS[which]

    def broken_guard(self) -> str | None:
        """Say where the guards were written over, or None."""
        for side, found, pattern in (
            ("before", self._front, self._pattern_front),
            ("behind", self._back, self._pattern_back),
        ):
            if np.array_equal(found, pattern):
                continue
            bad = np.flatnonzero(found != pattern)
            distance = found.size - int(bad[-1]) if side == "before" else int(bad[0]) + 1
            return f"{bad.size} bytes {side} {self.name} were written, the nearest {distance} bytes off"
        return None

    def free(self) -> None:
        """Give the pages back; the arrays must not be used after that."""
        self._runtime.unmap(self._base, self._mapped)


@functools.lru_cache(maxsize=256)
def _pattern(size: int) -> Array:
    """Return `size` bytes of the guard word; few sizes occur, and buffers are made for every series."""
    return np.resize(np.frombuffer(GUARD_WORD.to_bytes(4, "little"), dtype=np.uint8), size)


def name_regions(runtime: Runtime, buffers: Iterable[Buffer]) -> None:
    """Tell the fault handler which buffers there are."""
    runtime.library.cake_forget_regions()
    for buffer in buffers:
        runtime.library.cake_name_region(buffer.address, buffer.bytes, buffer.name.encode())
