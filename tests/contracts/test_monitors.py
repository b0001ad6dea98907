"""What every monitor keeps, whichever the registry finds: readings never raise, and say what is missing."""

from __future__ import annotations

import math

import msgspec
import pytest

from cake_tui import registry
from cake_tui.model.device import Device
from cake_tui.model.measure import Clock
from tests.menu.sample import CPU, GPU

MONITORS = registry.names("monitors")
SIMULATED = Device("simulated", "c", "a surface", "simulated:ridge", "x86-64-v4", 2)


@pytest.mark.parametrize("name", MONITORS)
@pytest.mark.parametrize("device", [CPU, GPU, SIMULATED], ids=lambda device: device.kind)
def test_readings_never_raise_and_say_what_is_missing(name: str, device: Device) -> None:
    monitor = registry.load("monitors", name)(device)
    if monitor is None:
        return  # it does not apply to such a device
    before = None
    for _ in range(3):
        reading = monitor.read()
        assert isinstance(reading, Clock)
        assert before is None or reading.mono >= before.mono
        for field in reading.__struct_fields__:
            value = getattr(reading, field)
            assert not isinstance(value, float) or math.isfinite(value)
        assert msgspec.json.decode(msgspec.json.encode(reading), type=Clock) == reading
        before = reading
    missing = monitor.missing()
    assert set(missing) <= set(Clock.__struct_fields__)
    assert all(missing.values())
    assert before is not None
    assert all(getattr(before, field) is None for field in missing)


def test_every_monitor_applies_to_some_device() -> None:
    assert MONITORS
    for name in MONITORS:
        made = [registry.load("monitors", name)(device) for device in (CPU, GPU, SIMULATED)]
        assert any(monitor is not None for monitor in made)
