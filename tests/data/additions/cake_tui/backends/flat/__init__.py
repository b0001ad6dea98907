"""A simulated machine on which every schedule takes the same time: what a gate must never accept."""

from __future__ import annotations

from cake_tui.backends import Backend
from cake_tui.backends.simulated import SimulatedBackend
from cake_tui.model.device import Device

TIME_US = 250


class FlatBackend(SimulatedBackend):
    """One device; its options hold the time."""

    name = "flat"

    def devices(self) -> tuple[Device, ...]:
        """Return the one device."""
        return (self.device(f"ridge,flat_us={TIME_US}"),)


PLUGIN: Backend = FlatBackend()
