"""Device buffers that tell on a kernel: guard bands on both sides, poison inside, placed elsewhere each time."""

from __future__ import annotations

import math

from cake_tui.backends.cuda.driver import CudaError, Driver
from cake_tui.backends.cuda.plan import failed
from cake_tui.backends.cuda.probes import Probes, Unlike

GUARD_BYTES = 4096
GUARD_WORD = 0x7FC5A5A5  # a NaN, so that what was read from a guard shows in a result
POISONS = (0x7FCDEAD1, 0xC0E8F5C3)  # a NaN with a payload; -7.28, which an accumulation onto it would change
DTYPE_BYTES = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2, "i32": 4, "u8": 1}
LINE_BYTES = 256
WORD_BYTES = 4


class Memory:
    """Gives and takes device memory, and knows how much of it is out."""

    def __init__(self, driver: Driver, probes: Probes) -> None:
        self.driver, self.probes, self.stream = driver, probes, probes.stream
        self.taken_bytes = 0
        self._sizes: dict[int, int] = {}

    def take(self, size: int, name: str = "") -> int:
        """Return the address of `size` bytes; raises Ended(LaunchFailed) where there is no room, naming what for."""
        try:
            address = self.driver.allocate(size)
        except CudaError as error:
            if error.sticky:
                raise
            free, total = self.driver.free_and_total()
            what = f"buffer {name}" if name else f"{size >> 20} MB beside the buffers"
            raise failed(
                f"{what}: {error}; {free >> 20} of {total >> 20} MB are free", limit="device memory", asked=size,
                available=free, unit="bytes",
            ) from None  # fmt: skip
        self._sizes[address] = size
        self.taken_bytes += size
        return address

    def give(self, address: int) -> None:
        """Take memory of `take` back."""
        self.taken_bytes -= self._sizes.pop(address)
        self.driver.free(address)


class Buffer:
    """One buffer of a kernel: `address` is where its data begin, guards lie around them.

    `align` is kept exactly: the data lie at no greater power of two, where it is below 256. `offset` moves them
    by so many lines of 256 bytes.
    """

    def __init__(
        self, memory: Memory, name: str, dtype: str, shape: tuple[int, ...], *, align: int = LINE_BYTES, offset: int = 0
    ) -> None:
        self.name, self.dtype, self.shape = name, dtype, shape
        self._memory = memory
        self.elements = math.prod(shape)
        self.bytes = max(self.elements, 1) * DTYPE_BYTES[dtype]
        align = max(align, WORD_BYTES)
        before = GUARD_BYTES + offset * LINE_BYTES
        self._base = memory.take(before + self.bytes + GUARD_BYTES + 2 * max(align, LINE_BYTES), name)
        start = self._base + before
        self.address = start + align if align < LINE_BYTES else -(-start // align) * align
        # The band behind begins at the next word; a byte or two between belong to nobody.
        self._behind = -(-self.bytes // WORD_BYTES) * WORD_BYTES
        self._driver, self._stream = memory.driver, memory.stream
        self._driver.fill32(self._guard_before, GUARD_WORD, GUARD_BYTES // WORD_BYTES, self._stream)
        self._driver.fill32(self.address + self._behind, GUARD_WORD, GUARD_BYTES // WORD_BYTES, self._stream)

    @property
    def _guard_before(self) -> int:
        return self.address - GUARD_BYTES

    def poison(self, which: int) -> None:
        """Fill with poison 0 or 1."""
        self._driver.fill32(self.address, POISONS[which], self._behind // WORD_BYTES, self._stream)

    def copy_from(self, address: int) -> None:
        """Copy data in from elsewhere on the device."""
        self._driver.copy(self.address, address, self.bytes, self._stream)

    def broken_guard(self) -> str | None:
        """Say where the guards were written over, or None."""
        probes = self._memory.probes
        before = probes.unlike_word(self._guard_before, GUARD_WORD, GUARD_BYTES)
        if before.count:
            off = GUARD_BYTES - before.last
            return f"{before.count} bytes before {self.name} were written, the nearest {off} bytes off"
        behind = probes.unlike_word(self.address + self._behind, GUARD_WORD, GUARD_BYTES)
        if behind.count:
            off = behind.first + 1 + self._behind - self.bytes
            return f"{behind.count} bytes behind {self.name} were written, the nearest {off} bytes off"
        return None

    def free(self) -> None:
        """Give the memory back."""
        self._memory.give(self._base)


class Copy:
    """What a buffer held at one moment."""

    def __init__(self, memory: Memory, buffer: Buffer) -> None:
        self.name, self.dtype, self.shape = buffer.name, buffer.dtype, buffer.shape
        self.elements, self.bytes = buffer.elements, buffer.bytes
        self._memory = memory
        self.address = memory.take(buffer.bytes)
        memory.driver.copy(self.address, buffer.address, buffer.bytes, memory.stream)

    def same_as(self, other: Copy | Buffer) -> bool:
        """Say whether both hold the same bytes."""
        return self.unlike(other).count == 0

    def unlike(self, other: Copy | Buffer) -> Unlike:
        """Compare byte by byte."""
        return self._memory.probes.differing(self.address, other.address, self.bytes)

    def free(self) -> None:
        """Give the memory back."""
        self._memory.give(self.address)
