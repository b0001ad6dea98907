"""Monitors read clocks, load, temperature and power of a device. One file a monitor."""

from __future__ import annotations

from typing import Protocol

from cake_tui.model.device import Device
from cake_tui.model.measure import Clock


class Monitor(Protocol):
    """Readings never raise: what cannot be read is None, and `missing` says since when and why."""

    def read(self) -> Clock:
        """Take one reading now, in well under a millisecond."""

    def missing(self) -> dict[str, str]:
        """Field name -> why it cannot be read."""


class MonitorFactory(Protocol):
    """What `PLUGIN` is."""

    def __call__(self, device: Device) -> Monitor | None:
        """Return a monitor for the device, or None where this kind of monitor does not apply."""
