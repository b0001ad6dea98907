"""A process that measures what this machine reaches: fp32 arithmetic and memory traffic on all cores."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from cake_tui.backends._rates import Rates
from cake_tui.backends.cpu.compilers import find_compiler, rates_command
from cake_tui.backends.cpu.device import last_level_bytes
from cake_tui.backends.cpu.runtime import MAX_ARGUMENTS, CLaunch, Runtime, compiled
from cake_tui.model.device import Device

SOURCE = Path(__file__).with_name("rates.c")
SHARE_S = 0.1  # for arithmetic, and again for memory
PARTS = 8  # tasks a thread, so that one that lost its core for a while is helped out
CHAINS, ROUNDS = 12, 1 << 16  # a task is about a tenth of a millisecond
LEAST_BYTES, MOST_BYTES = 64 << 20, 1 << 30  # of one buffer
LAST_LEVELS = 2  # a buffer is so many times what all caches hold
MEMORY_PARTS = 8  # a buffer takes at most this fraction of the free memory
LEAST_RUNS = 3


class Bench:
    """The pool with the compiled entries."""

    def __init__(self, device: Device) -> None:
        lanes_bytes = device.vector_bytes or 16
        command = find_compiler()
        self.library = ctypes.CDLL(str(compiled([SOURCE], rates_command(command, device.arch, lanes_bytes))))
        self.runtime = Runtime(device.cores)
        self.tasks = device.cores * PARTS
        self.lanes = lanes_bytes // 4
        self.out = (ctypes.c_float * self.tasks)()

    def peak_gflops(self) -> float:
        """Return 1e9 multiply-adds a second, counted as two operations each: the fastest run."""
        launch = self._launch("multiply_add", ctypes.addressof(self.out), ROUNDS)
        ns = self._fastest([launch])[0]
        return 2.0 * CHAINS * self.lanes * ROUNDS * self.tasks / ns

    def memory_gbps(self) -> float | None:
        """Return 1e9 bytes a second, read and written, of the fastest copy or read; None without enough memory."""
        size = min(max(LAST_LEVELS * last_level_bytes(), LEAST_BYTES), MOST_BYTES)
        if size > _free_bytes() // MEMORY_PARTS or size <= last_level_bytes():
            return None
        kib = size // self.tasks >> 10 or 1
        whole = kib * self.tasks << 10
        mapped = -(-whole // 4096) * 4096
        one, other = self.runtime.map(mapped), self.runtime.map(mapped)
        try:
            # Pages that were never written all are one page of zeros.
            self.runtime.run([self._launch("copy_vectors", other, one, kib)])
            self.runtime.run([self._launch("copy_vectors", one, other, kib)])
            launches = [
                (self._launch("copy_vectors", one, other, kib), 2),
                (self._launch("copy_library", one, other, kib), 2),
                (self._launch("read_all", one, ctypes.addressof(self.out), kib), 1),
            ]
            fastest = self._fastest([launch for launch, _ in launches])
            return max(times * whole / ns for (_, times), ns in zip(launches, fastest, strict=True))
        finally:
            self.runtime.unmap(one, mapped)
            self.runtime.unmap(other, mapped)

    def _launch(self, entry: str, *arguments: int) -> CLaunch:
        words = (ctypes.c_size_t * MAX_ARGUMENTS)(*arguments)
        address = ctypes.cast(getattr(self.library, entry), ctypes.c_void_p).value
        return CLaunch(
            entry=address, grid=(ctypes.c_int32 * 3)(self.tasks, 1, 1), arguments=len(arguments), argument=words
        )

    def _fastest(self, launches: Sequence[CLaunch]) -> list[int]:
        """Run all in turn for a tenth of a second, three times at least; return the shortest time of each, in ns."""
        best = [sys.maxsize] * len(launches)
        until, count = time.monotonic() + SHARE_S, 0
        while count < LEAST_RUNS or time.monotonic() < until:
            best = [min(ns, self.runtime.run([launch]).ns) for ns, launch in zip(best, launches, strict=True)]
            count += 1
        return best


def _free_bytes() -> int:
    """Return the memory that can be had without swapping, 0 where that cannot be read."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return 0


def main() -> None:
    """Measure and print one line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", required=True, help="JSON")
    device = msgspec.json.decode(parser.parse_args().device, type=Device)
    with contextlib.suppress(OSError):  # only some users may
        os.setpriority(os.PRIO_PROCESS, 0, -5)
    bench = Bench(device)
    with bench.runtime.pinned():
        found = Rates(bench.peak_gflops(), bench.memory_gbps())
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main()
