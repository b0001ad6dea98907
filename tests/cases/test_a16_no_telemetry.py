"""A16 on a stand-in GPU: what NVML cannot say is said once, and the run goes on without it."""

from __future__ import annotations

import pytest

from cake_tui.model import event as ev
from tests.backends.gpu_stand_in import GB
from tests.cases.on_gpu import make_kernel, put_nvml_on_path, put_on_path, run
from tests.cases.shell import Shell, beats, events, variations
from tests.engine.scripted import folded

pytestmark = pytest.mark.cc

OURS = "GPU-11111111-0000-0000-0000-000000000000"
FAULTS = {
    "mismatch": ("INIT_FAILS.append(18)", "LibRmVersionMismatch", "sm_mhz"),
    "missing": ("INIT_FAILS.append(12)", "LibraryNotFound", "sm_mhz"),
    "no clock": ('GPUS[1].fails["nvmlDeviceGetClockInfo"] = 999', "Unknown", "sm_mhz"),
    "no power": ('GPUS[1].fails["nvmlDeviceGetPowerUsage"] = 3', "NotSupported", "power_w"),
}


@pytest.mark.parametrize("fault", variations(FAULTS))
def test_a_run_without_a_reading_goes_on_and_says_so_once(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    line, name, field = FAULTS[fault]
    gpu = put_on_path(shell, monkeypatch)
    gpu.devices((OURS, 90, 132, 140 * GB, "NVIDIA H200"))
    put_nvml_on_path(shell, line)
    make_kernel(shell, "FAULT = [0, 1000, 1001]")
    session = run(shell, 2, "--headless", "--set", "heartbeat=0.1")
    history = folded(session)
    assert {row.outcome for row in history.rows} == {"Measured"}
    assert history.state == "done"
    fired = [event.stale for event in events(session, ev.GuardFired) if event.stale.code == "S0"]
    codes = [event.stale_codes for event in events(session, ev.Coarse) if event.candidate]
    if field == "sm_mhz":
        [once] = fired
        assert name in once.saw
        assert all("S0" in found for found in codes)
    else:
        assert not fired
    readings = [beat for beat in beats(session) if beat.clock]
    assert readings
    assert all(name in beat.missing[field] for beat in readings)
    assert all(getattr(beat.clock, field) is None for beat in readings)
