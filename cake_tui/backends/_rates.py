"""Peak rates of a device, measured in a process of their own rather than taken from its data sheet."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec

import cake_tui
from cake_tui.config import child_environment
from cake_tui.errors import ENVIRONMENT, UserError
from cake_tui.model.device import Device

LIMIT_S = 120.0  # compiling included; usually half a second, two with a GPU's driver to start


class Rates(msgspec.Struct, frozen=True):
    """The fastest of several short runs; `memory_gbps` counts bytes read and written, None: unknown."""

    peak_gflops: float
    memory_gbps: float | None


def measure_rates(module: str, device: Device) -> Device:
    """Return the device with its arithmetic and memory peaks, as the process of a backend's `module` finds them.

    Raises UserError (ENVIRONMENT) where the measurement fails.
    """
    root = str(Path(cake_tui.__file__).parents[1])
    path = os.pathsep.join([root, *(entry for entry in sys.path if entry)])
    argv = [sys.executable, "-m", module, "--device", msgspec.json.encode(device).decode()]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False,
            env=child_environment((), PYTHONPATH=path),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UserError(f"peak rates could not be measured within {LIMIT_S:g} s", ENVIRONMENT) from None
    try:
        found = msgspec.json.decode(done.stdout, type=Rates)
    except msgspec.DecodeError:
        said = done.stderr.decode(errors="replace").strip().splitlines() or [f"ended with {done.returncode}"]
        raise UserError(f"peak rates could not be measured: {said[-1][:200]}", ENVIRONMENT) from None
    return msgspec.structs.replace(device, peak_gflops=found.peak_gflops, memory_gbps=found.memory_gbps)
