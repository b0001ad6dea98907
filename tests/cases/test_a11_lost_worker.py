"""A11 on a stand-in GPU: an evaluator that an error stays in is replaced; a GPU that is gone pauses the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cake_tui.model import event as ev
from cake_tui.model.row import Row
from tests.backends.gpu_stand_in import H200, StandIn
from tests.cases.on_gpu import by_knob, make_kernel, put_on_path, run
from tests.cases.shell import Shell, events
from tests.engine.scripted import folded, until

pytestmark = pytest.mark.cc

ILLEGAL, UNAVAILABLE = 700, 46


@pytest.fixture
def gpu(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    return put_on_path(shell, monkeypatch)


def by_fault(session: Path) -> dict[object, Row]:
    return by_knob(session, "FAULT")


def test_a_kernel_that_breaks_its_context_pays_alone(shell: Shell, gpu: StandIn) -> None:
    make_kernel(shell, f"FAULT = [0, 1000, 1001, {ILLEGAL}, 1002, 1003]")
    session = run(shell, 5, "--headless")
    found = by_fault(session)
    assert {fault: row.outcome for fault, row in found.items()} == {
        0: "Measured", 1000: "Measured", 1001: "Measured", ILLEGAL: "Crashed", 1002: "Measured", 1003: "Measured"
    }  # fmt: skip
    assert found[ILLEGAL].reason.startswith("CUDA_ERROR_ILLEGAL_ADDRESS")
    [replaced] = events(session, ev.EvaluatorReplaced)
    assert replaced.candidate == found[ILLEGAL].number
    assert folded(session).state == "done"


def test_a_gpu_that_is_gone_pauses_the_run_until_it_is_mended(shell: Shell, gpu: StandIn) -> None:
    make_kernel(shell, f"FAULT = [0, 1000, {UNAVAILABLE}, 1001, 1002]")
    session = run(shell, 4)
    for _ in range(2):  # the kernel takes the GPU down whenever it runs
        until(_paused(session))
        paused = folded(session)
        for part in (H200, "CUDA_ERROR_DEVICE_UNAVAILABLE", "resume"):
            assert part in paused.state_reason
        assert paused.paused_by == "device"
        assert by_fault(session)[UNAVAILABLE].outcome is None
        assert not paused.counts.get("Crashed")
        gpu.mend()
        shell("resume", "a")
    until(lambda: folded(session).state == "done")
    found = by_fault(session)
    assert found[UNAVAILABLE].outcome == "Crashed"  # lost twice by the same step
    assert "twice" in found[UNAVAILABLE].reason
    assert {found[fault].outcome for fault in (0, 1000, 1001, 1002)} == {"Measured"}


def _paused(session: Path) -> Callable[[], bool]:
    return lambda: session.exists() and folded(session).state == "paused"
