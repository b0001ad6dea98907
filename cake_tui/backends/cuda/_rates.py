"""A process that measures what this GPU reaches: fp32 multiply-adds and a copy, without CuPy."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import msgspec

from cake_tui.backends._rates import Rates
from cake_tui.backends.cuda.driver import Driver
from cake_tui.backends.cuda.probes import Probes
from cake_tui.config import show_only_gpu
from cake_tui.model.device import Device

SHARE_S = 0.15  # for each way
LEAST_RUNS = 5
CACHES = 16  # a buffer is so many times the last-level cache
MEMORY_PARTS = 8  # and at most this fraction of the free memory
ROUNDS = 4096


def main() -> None:
    """Measure and print one line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", required=True, help="JSON")
    device = msgspec.json.decode(parser.parse_args().device, type=Device)
    show_only_gpu(device.uuid)
    driver = Driver()
    handle = driver.find(device.uuid)
    driver.current(handle)
    stream = driver.stream()
    probes = Probes(driver, device.arch, device.cores, stream)
    arithmetic, operations = probes.multiply_add(ROUNDS)
    gflops = operations / _fastest_us(driver, arithmetic.put, stream) / 1e3
    size = min(CACHES * max(device.l2_bytes, 32 << 20), driver.free_and_total()[0] // MEMORY_PARTS) // 4096 * 4096
    one, other = driver.allocate(size), driver.allocate(size)
    driver.fill32(one, 0x3F9E0419, size // 4, stream)
    ways = (probes.copy(one, other, size).put, lambda on: driver.copy(other, one, size, on))  # ours, the driver's own
    gbps = 2 * size / min(_fastest_us(driver, way, stream) for way in ways) / 1e3
    sys.stdout.write(msgspec.json.encode(Rates(gflops, gbps)).decode() + "\n")


def _fastest_us(driver: Driver, put: Callable[[int], None], stream: int) -> float:
    """Do work for a share of a second, five times at least; return the shortest time, in microseconds."""
    events = driver.event(), driver.event()
    best, count, until = float("inf"), 0, time.monotonic() + SHARE_S
    while count < LEAST_RUNS or time.monotonic() < until:
        driver.record(events[0], stream)
        put(stream)
        driver.record(events[1], stream)
        driver.synchronize(stream)
        best, count = min(best, driver.elapsed_us(*events)), count + 1
    return best


if __name__ == "__main__":
    main()
