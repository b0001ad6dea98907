"""A15 on two stand-in GPUs: kernels, telemetry and guard are on one and the same, whatever the numbering."""

from __future__ import annotations

import pytest

from cake_tui.model import event as ev
from tests.backends.gpu_stand_in import GB
from tests.cases.on_gpu import make_kernel, put_nvml_on_path, put_on_path, run
from tests.cases.shell import Shell, beats, events, variations
from tests.engine.scripted import folded

pytestmark = pytest.mark.cc

OURS, OTHER = "GPU-11111111-0000-0000-0000-000000000000", "GPU-00000000-0000-0000-0000-000000000000"  # NVML: 1, 0


@pytest.mark.parametrize("visible", variations(("1,0", "1", OURS[:12])))
def test_the_gpu_that_runs_the_kernels_is_the_one_that_is_read(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, visible: str
) -> None:
    gpu = put_on_path(shell, monkeypatch)
    gpu.devices((OTHER, 90, 132, 140 * GB, "NVIDIA H200"), (OURS, 90, 132, 140 * GB, "NVIDIA H200"))
    put_nvml_on_path(shell)
    make_kernel(shell, "FAULT = [0, 1000]")
    session = run(shell, 1, "--headless", "--set", "heartbeat=0.1", CUDA_VISIBLE_DEVICES=visible)
    assert folded(session).device.uuid == OURS
    assert OURS in (session / "session.toml").read_text(encoding="utf-8")
    series = [one for event in events(session, ev.Coarse) for one in event.series]
    assert {one.before.sm_mhz for one in series if one.before} == {1980.0}  # the other one idles at 210
    assert {beat.clock.sm_mhz for beat in beats(session) if beat.clock} == {1980.0}
    assert OURS in shell("resume", "a", code=3, CUDA_VISIBLE_DEVICES="0")
    assert folded(session).state == "done"
