"""The GPUs of this machine, asked of the driver in a short process of its own: the engine never opens the device."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import msgspec

import cake_tui
from cake_tui.backends.cuda.driver import LIBRARY, CudaError, Driver
from cake_tui.config import child_environment
from cake_tui.errors import ENVIRONMENT, UserError
from cake_tui.model.device import Device

LIST_S = 60.0  # the driver needs a tenth of a second; without persistence mode, or with many devices, seconds
LEAST_CAPABILITY = 80
# Code for exactly this chip: with an "a" its own instructions (TMA and wgmma from 90 on) are there too.
SPECIFIC = {90: "sm_90a", 100: "sm_100a", 101: "sm_101a", 103: "sm_103a", 120: "sm_120a", 121: "sm_121a"}
REGISTERS_PER_THREAD = 255


class Found(msgspec.Struct, frozen=True):
    """What the short process says: the devices, or why there are none."""

    devices: tuple[Device, ...] = ()
    error: str = ""
    driver_version: int = 0


def local_devices() -> tuple[Device, ...]:
    """Return the visible devices of sm_80 or newer, in CUDA's order; raises UserError (ENVIRONMENT) for none."""
    return usable(ask())


def usable(found: Found) -> tuple[Device, ...]:
    """Return those of the devices that kernels here can run on; raises UserError (ENVIRONMENT) for none."""
    if found.error:
        raise UserError(found.error, ENVIRONMENT)
    new_enough = tuple(device for device in found.devices if device.capability >= LEAST_CAPABILITY)
    if not new_enough:
        old = ", ".join(f"{device.name} ({device.arch})" for device in found.devices)
        raise UserError(f"no NVIDIA GPU of sm_80 or newer: {old or 'the driver lists none'}", ENVIRONMENT)
    return new_enough


@functools.lru_cache(maxsize=1)
def ask() -> Found:
    """Have the driver list its devices, once a process; what goes wrong is in `error`."""
    return _asked()


def lost(uuid: str) -> str | None:
    """Return why no new process can use a device, None where one can."""
    return _asked(uuid).error or None


def _asked(*words: str) -> Found:
    root = str(Path(cake_tui.__file__).parents[1])
    path = os.pathsep.join([root, *(entry for entry in sys.path if entry)])
    try:
        done = subprocess.run(
            [sys.executable, "-m", "cake_tui.backends.cuda._devices", *words], stdin=subprocess.DEVNULL,
            capture_output=True, timeout=LIST_S, check=False, env=child_environment((), PYTHONPATH=path),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Found(error=f"NVIDIA's driver did not answer within {LIST_S:g} s; see nvidia-smi")
    try:
        return msgspec.json.decode(done.stdout, type=Found)
    except msgspec.DecodeError:
        said = done.stderr.decode(errors="replace").strip().splitlines() or [f"ended with {done.returncode}"]
        return Found(error=f"NVIDIA's driver could not be asked: {said[-1][:200]}")


def look(library: str = LIBRARY, *, use: str | None = None) -> Found:
    """Ask the driver in this process, and have it `use` a device; never raises for a machine without one."""
    try:
        driver = Driver(library)
    except OSError as error:
        return Found(error=f"no NVIDIA driver: {error}; install it, or run with --backend cpu")
    except CudaError as error:
        return Found(error=f"NVIDIA's driver finds no usable GPU: {error}; see nvidia-smi")
    try:
        devices = tuple(_device(driver, uuid) for uuid in driver.uuids())
        if use is not None:
            driver.current(driver.find(use))
            driver.synchronize(driver.stream())
        return Found(devices, driver_version=driver.version())
    except LookupError as error:
        return Found(error=str(error))
    except CudaError as error:
        return Found(error=f"NVIDIA's driver could not be asked: {error} from {error.call}")


def _device(driver: Driver, uuid: str) -> Device:
    handle = driver.find(uuid)

    def read(name: str) -> int:
        return driver.attribute(handle, name)

    capability = 10 * read("major") + read("minor")
    bytes_a_cycle = 2 * read("memory_bus_bits") / 8  # two transfers a cycle
    return Device(
        kind="cuda", target="cuda", name=driver.name(handle), uuid=uuid,
        arch=SPECIFIC.get(capability, f"sm_{capability}"), cores=read("sms"), clock_mhz=read("clock_khz") / 1e3 or None,
        memory_gbps=read("memory_khz") * bytes_a_cycle / 1e6 or None, l2_bytes=read("l2_bytes"), line_bytes=128,
        threads_per_block=read("threads_per_block"), threads_per_sm=read("threads_per_sm"),
        blocks_per_sm=read("blocks_per_sm"), registers_per_thread=REGISTERS_PER_THREAD,
        registers_per_sm=read("registers_per_sm"), smem_per_block_bytes=read("smem_per_block_bytes"),
        smem_per_sm_bytes=read("smem_per_sm_bytes"), capability=capability,
    )  # fmt: skip
