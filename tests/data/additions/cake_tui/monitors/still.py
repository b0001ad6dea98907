"""Reads the temperature of a simulated machine, which never changes."""

from __future__ import annotations

import time

from cake_tui.model.device import Device
from cake_tui.model.measure import Clock

TEMPERATURE_C = 41.5


class StillMonitor:
    """The temperature and nothing else."""

    def read(self) -> Clock:
        """Return the temperature, now."""
        return Clock(mono=time.monotonic(), temperature_c=TEMPERATURE_C)

    def missing(self) -> dict[str, str]:
        """Return nothing: a simulated machine has no more to read."""
        return {}


def still(device: Device) -> StillMonitor | None:
    """Watch simulated devices alone."""
    return StillMonitor() if device.kind == "simulated" else None


PLUGIN = still
