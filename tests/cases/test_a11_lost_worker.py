"""A11 on a stand-in GPU: an evaluator that an error stays in is replaced; a GPU that is gone pauses the run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cake_tui.model import event as ev
from cake_tui.model.row import Row
from tests.backends.gpu_stand_in import H200, HERE, StandIn, stand_in
from tests.cases.shell import Shell, events
from tests.engine.scripted import folded, until

pytestmark = pytest.mark.cc

TOML = """
title = "relu(A·B + bias), whatever FAULT leaves behind"
template = "kernel.cu"
entry = "kernel"
reference = "matmul_bias_relu"
shapes = [{{ M = 32, N = 32, K = 32 }}]
peers = []
[knobs]
FAULT = {faults}
[launch]
grid = ["ceil(N / 32)", "ceil(M / 8)"]
block = ["32", "8"]
"""
SOURCE = 'extern "C" __global__ void kernel(const float *a, const float *b, const float *bias, float *y SIZES) {}\n'
ILLEGAL, UNAVAILABLE = 700, 46


@pytest.fixture
def gpu(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    made = stand_in(monkeypatch, tmp_path)
    shell.environment |= made.environment
    shell.environment["PYTHONPATH"] += os.pathsep + str(HERE)
    return made


def run(shell: Shell, faults: list[int], *words: str) -> Path:
    folder = shell.folder / "kernels" / "faulty"
    folder.mkdir(parents=True)
    (folder / "kernel.toml").write_text(TOML.format(faults=faults), encoding="utf-8")
    (folder / "kernel.cu").write_text(SOURCE, encoding="utf-8")
    limits = ("--candidates", str(len(faults) - 1), "--set", "run_s=1", "--set", "screen=off", "--round", "2")
    shell.apart("run", "faulty", "--backend", "cuda", "--agent", "grid", "--name", "a", *limits, *words)
    return shell.sessions / "a"


def by_fault(session: Path) -> dict[object, Row]:
    return {dict(row.schedule.knobs)["FAULT"]: row for row in folded(session).rows if row.schedule}


def test_a_kernel_that_breaks_its_context_pays_alone(shell: Shell, gpu: StandIn) -> None:
    session = run(shell, [0, 1000, 1001, ILLEGAL, 1002, 1003], "--headless")
    found = by_fault(session)
    assert {fault: row.outcome for fault, row in found.items()} == {
        0: "Measured", 1000: "Measured", 1001: "Measured", ILLEGAL: "Crashed", 1002: "Measured", 1003: "Measured"
    }  # fmt: skip
    assert found[ILLEGAL].reason.startswith("CUDA_ERROR_ILLEGAL_ADDRESS")
    [replaced] = events(session, ev.EvaluatorReplaced)
    assert replaced.candidate == found[ILLEGAL].number
    assert folded(session).state == "done"


def test_a_gpu_that_is_gone_pauses_the_run_until_it_is_mended(shell: Shell, gpu: StandIn) -> None:
    session = run(shell, [0, 1000, UNAVAILABLE, 1001, 1002])
    for _ in range(2):  # the kernel takes the GPU down whenever it runs
        until(_paused(session), 30)
        paused = folded(session)
        for part in (H200, "CUDA_ERROR_DEVICE_UNAVAILABLE", "resume"):
            assert part in paused.state_reason
        assert paused.paused_by == "device"
        assert by_fault(session)[UNAVAILABLE].outcome is None
        assert not paused.counts.get("Crashed")
        gpu.mend()
        shell("resume", "a")
    until(lambda: folded(session).state == "done", 30)
    found = by_fault(session)
    assert found[UNAVAILABLE].outcome == "Crashed"  # lost twice by the same step
    assert "twice" in found[UNAVAILABLE].reason
    assert {found[fault].outcome for fault in (0, 1000, 1001, 1002)} == {"Measured"}


def _paused(session: Path) -> Callable[[], bool]:
    return lambda: session.exists() and folded(session).state == "paused"
