"""The check's own kernels on the device: equality, guards, hashes, distance from a reference, clocks."""

from __future__ import annotations

import ctypes
import hashlib
import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from cake_tui.backends._bounds import ROUNDED_ULPS, ROUNDED_UNITS, SUBNORMAL, Comparison, Rule
from cake_tui.backends.cuda.compilers import INSTALL, compile_file, find_compiler, version
from cake_tui.backends.cuda.driver import CudaError, Driver, PreparedLaunch
from cake_tui.config import cache_dir
from cake_tui.errors import ENVIRONMENT, UserError
from cake_tui.model.problem import Problem

SOURCE = Path(__file__).with_name("probes.cu")
THREADS = 256
BLOCKS_PER_SM = 8
RESULT_WORDS = 16
DTYPE_NUMBERS = {"f32": 0, "f64": 1, "f16": 2, "bf16": 3, "i32": 4, "u8": 5}
RULE_NUMBERS: dict[Rule, int] = {"random": 0, "bits": 1, "rounded": 2}
NONE = 2**64 - 1
HEAP_PIECE = 4096
STAMPS = 128  # that are kept at a time
MULTIPROCESSORS = 256  # as in the source: more than any chip has
STAMP_BYTES = 16 * MULTIPROCESSORS


class Unlike(msgspec.Struct, frozen=True):
    """How many bytes differ, and the first and the last of them by their place."""

    count: int
    first: int
    last: int


def compiled(arch: str) -> bytes:
    """Return the kernels for an architecture, from the cache where they were compiled before.

    Raises UserError (ENVIRONMENT) where they cannot be compiled.
    """
    command = find_compiler()
    text = SOURCE.read_text(encoding="utf-8")
    identity = "\0".join((*command, version(command), arch, text))
    target = cache_dir() / f"probes-{hashlib.sha256(identity.encode()).hexdigest()[:32]}.cubin"
    try:
        return target.read_bytes()
    except OSError:
        pass
    with tempfile.TemporaryDirectory(prefix="cake-tui-cuda-") as scratch:
        cubin = compile_file(command, arch, text, Path(scratch))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix="probes-", suffix=".tmp", delete=False) as file:
            file.write(cubin)
        Path(file.name).rename(target)
    except OSError:  # a cache that cannot be written costs a second a start, nothing else
        pass
    return cubin


class Probes:
    """The kernels loaded in the current context, with a place for their results; used from one thread."""

    def __init__(self, driver: Driver, arch: str, sms: int, stream: int) -> None:
        self.driver, self.stream = driver, stream
        self._module = _loaded(driver, arch)
        self._functions: dict[str, int] = {}
        self._blocks = sms * BLOCKS_PER_SM
        self._sms = sms
        self._result = driver.allocate(8 * RESULT_WORDS)
        self._stamps = driver.allocate(STAMPS * STAMP_BYTES)
        driver.fill8(self._stamps, 0, STAMPS * STAMP_BYTES, stream)
        self._progress = driver.host_memory(4)
        self._host = (ctypes.c_uint64 * RESULT_WORDS)()
        self._hash_room = self._hash_bytes = 0
        self._stampers = [self._stamper(number) for number in range(STAMPS)]

    def differing(self, one: int, other: int, size: int) -> Unlike:
        """Compare two pieces of memory byte by byte."""
        words = [ctypes.c_uint64(one), ctypes.c_uint64(other), ctypes.c_uint64(size), ctypes.c_uint64(self._result)]
        return self._unlike("differing", words)

    def unlike_word(self, address: int, word: int, size: int) -> Unlike:
        """Compare memory with a repeated word."""
        words = [ctypes.c_uint64(address), ctypes.c_uint32(word), ctypes.c_uint64(size), ctypes.c_uint64(self._result)]
        return self._unlike("unlike_word", words)

    def hashed_all(self, pieces: Sequence[tuple[int, int]]) -> list[str]:
        """Do that for pieces of memory (address, bytes), in one go."""
        if not pieces:
            return []
        size = 16 * len(pieces)
        if size > self._hash_bytes:
            if self._hash_room:
                self.driver.free(self._hash_room)
            self._hash_room, self._hash_bytes = self.driver.allocate(2 * size), 2 * size
        self.driver.fill8(self._hash_room, 0, size, self.stream)
        for position, (address, length) in enumerate(pieces):
            out = self._hash_room + 16 * position
            words = [ctypes.c_uint64(address), ctypes.c_uint64(length), ctypes.c_uint64(out)]
            self._launch("hashed", words).put(self.stream)
        found = (ctypes.c_uint64 * (2 * len(pieces)))()
        self.driver.download(ctypes.addressof(found), self._hash_room, size, self.stream)
        self.driver.synchronize(self.stream)
        return [f"{found[2 * at]:016x}{found[2 * at + 1]:016x}" for at in range(len(pieces))]

    def left_over(
        self, one: int, other: int | None, elements: int, words: int, poisons: tuple[int, int]
    ) -> tuple[int, int]:
        """Count elements of `words` words that hold the first poison in `one` (and the second in `other`).

        Returns the count and the first one's place.
        """
        self._clear((0, NONE))
        self._launch(
            "left_over", [
                ctypes.c_uint64(one), ctypes.c_uint64(other or 0), ctypes.c_uint64(elements), ctypes.c_int(words),
                ctypes.c_uint32(poisons[0]), ctypes.c_uint32(poisons[1]), ctypes.c_uint64(self._result),
            ],
        ).put(self.stream)  # fmt: skip
        count, first = self._results(2)
        return count, first

    def compare(
        self, found: int, dtype: str, shape: tuple[int, ...], value: int, scale: int, problem: Problem, rule: Rule,
        rows: Any = None,
    ) -> Comparison:  # fmt: skip
        """Compare what a kernel wrote with float64 value and scale of the same shape, as `_bounds.compare` does.

        `rows` (an address of 64-bit numbers, and their count) says which rows of `found` value and scale are of.
        """
        row_elements = 1
        for extent in shape[1:]:
            row_elements *= extent
        row_address, count = rows if rows is not None else (0, shape[0] if shape else 1)
        elements = row_elements * count
        self._clear((0, 0, NONE, 0, 0, 0, 0, 0, 0))
        self._launch(
            "compared", [
                ctypes.c_uint64(found), ctypes.c_int(DTYPE_NUMBERS[dtype]), ctypes.c_uint64(value),
                ctypes.c_uint64(scale), ctypes.c_uint64(elements), ctypes.c_uint64(max(row_elements, 1)),
                ctypes.c_uint64(row_address), ctypes.c_int(RULE_NUMBERS[rule]), ctypes.c_double(problem.tolerance_abs),
                ctypes.c_double(problem.tolerance_units), ctypes.c_double(SUBNORMAL), ctypes.c_double(ROUNDED_ULPS),
                ctypes.c_double(ROUNDED_UNITS), ctypes.c_uint64(self._result),
            ],
        ).put(self.stream)  # fmt: skip
        bad, nans, first, *bits = self._results(9)
        error, unit, share, absolute, units, largest = struct.unpack("<6d", struct.pack("<6Q", *bits))
        index: list[int] = []
        for extent in reversed(shape if bad else ()):
            index.append(first % extent)
            first //= extent
        return Comparison(
            bad_elements=bad, elements=elements, nans=nans, max_abs_err=error,
            rel_err=error / largest if largest else error, worst_unit=unit, bound_share=share, absolute_share=absolute,
            units_share=units, first_index=tuple(reversed(index)),
        )  # fmt: skip

    def heap_pieces(self) -> int:
        """Count the free pieces of the heap that kernels allocate from."""
        self._clear((0,))
        words = [ctypes.c_uint64(HEAP_PIECE), ctypes.c_uint64(self._result)]
        self._launch("heap_pieces", words, blocks=1, threads=1).put(self.stream)
        return self._results(1)[0]

    # --- the device's clock -----------------------------------------------------------------------------

    def stamp(self, number: int) -> None:
        """Have every multiprocessor write down its cycles and the time, at one of `STAMPS` places."""
        self._stampers[number].put(self.stream)

    def last_stamp(self) -> int:
        """Return the number of the last stamp that the device came to, also where all has failed since."""
        return int(ctypes.c_uint32.from_address(self._progress).value)

    def gigahertz(self, first: int, count: int) -> list[float | None]:
        """Return cycles a nanosecond between each stamp and the next one, in pairs from `first` on.

        Each is the multiprocessors' median, None where there are no two readings.
        """
        room = ctypes.create_string_buffer(2 * count * STAMP_BYTES)
        start = self._stamps + first * STAMP_BYTES
        self.driver.download(ctypes.addressof(room), start, 2 * count * STAMP_BYTES, self.stream)
        self.driver.synchronize(self.stream)
        stamps = np.frombuffer(room.raw, dtype=np.uint64).reshape(count, 2, MULTIPROCESSORS, 2).astype(np.float64)
        return [_rate(before, after) for before, after in stamps]

    def _stamper(self, number: int) -> PreparedLaunch:
        place = ctypes.c_uint64(self._stamps + number * STAMP_BYTES)
        words = [place, ctypes.c_uint64(self._progress), ctypes.c_uint32(number)]
        return self._launch("stamped", words, blocks=2 * self._sms, threads=32)

    # --- peak rates -------------------------------------------------------------------------------------

    def copy(self, source: int, target: int, size: int) -> PreparedLaunch:
        """Return a launch that copies `size` bytes."""
        words = [ctypes.c_uint64(source), ctypes.c_uint64(target), ctypes.c_uint64(size // 16)]
        return self._launch("copied", words, threads=512)

    def multiply_add(self, rounds: int) -> tuple[PreparedLaunch, float]:
        """Return a launch of multiply-adds alone, and how many floating-point operations it does."""
        words = [ctypes.c_uint64(self._result), ctypes.c_float(1.0001), ctypes.c_float(0.5), ctypes.c_int(rounds)]
        launch = self._launch("multiplied", words, blocks=self._blocks)
        return launch, 512.0 * rounds * self._blocks * THREADS

    # --- the parts of the above -------------------------------------------------------------------------

    def _launch(self, name: str, words: list[Any], blocks: int = 0, threads: int = THREADS) -> PreparedLaunch:
        if name not in self._functions:
            self._functions[name] = self.driver.function(self._module, name)
        return PreparedLaunch(
            self.driver, self._functions[name], (blocks or self._blocks, 1, 1), (threads, 1, 1), words
        )  # fmt: skip

    def _unlike(self, name: str, words: list[Any]) -> Unlike:
        self._clear((0, NONE, 0))
        self._launch(name, words).put(self.stream)
        count, first, behind = self._results(3)
        return Unlike(count, first, behind - 1)

    def _clear(self, values: tuple[int, ...]) -> None:
        for position, value in enumerate(values):
            self._host[position] = value
        self.driver.upload(self._result, ctypes.addressof(self._host), 8 * len(values), self.stream)

    def _results(self, count: int) -> list[int]:
        self.driver.download(ctypes.addressof(self._host), self._result, 8 * count, self.stream)
        self.driver.synchronize(self.stream)
        return list(self._host[:count])


def _loaded(driver: Driver, arch: str) -> int:
    """Load the kernels; raises UserError (ENVIRONMENT) where the driver refuses what the compiler makes."""
    try:
        return driver.load(compiled(arch))
    except CudaError as error:
        if error.sticky:
            raise
        serves = f"{driver.version() // 1000}.{driver.version() % 1000 // 10}"
        made = f"what {version(find_compiler())} makes for {arch}"
        raise UserError(
            f"the driver serves CUDA {serves} and refuses {made}: {error}; install a newer driver, or {INSTALL}",
            ENVIRONMENT,
        ) from None


def _rate(before: Any, after: Any) -> float | None:
    """Return the median of cycles over nanoseconds; rows are multiprocessors."""
    cycles, ns = (after - before).T
    seen = (before[:, 1] > 0) & (ns > 0) & (cycles > 0)
    return float(np.median(cycles[seen] / ns[seen])) if seen.any() else None
