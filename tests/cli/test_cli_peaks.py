"""Peak rates from the command line: `doctor` measures them, a session records them, nobody disturbs a timed kernel."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cake_tui.backends.cpu.device import local_device
from cake_tui.cli import main
from cake_tui.model import event as ev
from cake_tui.store.lock import take_device
from tests.cases.shell import Shell


def peaks(capfd: pytest.CaptureFixture[str]) -> dict[str, str]:
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)["found"]
    return next(one for one in found if one["subject"] == "peak rates")


@pytest.mark.cc
def test_doctor_measures_what_the_machine_reaches(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAKE_TUI_LOCKS", str(tmp_path / "locks"))
    found = peaks(capfd)
    assert found["state"] == "ok"
    gflops = re.search(r"(\d+) GFLOP/s", found["text"])
    assert gflops is not None
    assert int(gflops[1]) > 0
    assert peaks(capfd)["state"] == "ok"  # it let go of the device


@pytest.mark.cc
def test_doctor_leaves_a_device_alone_that_somebody_uses(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAKE_TUI_LOCKS", str(tmp_path / "locks"))
    lock = take_device(local_device().uuid, "night", "ada")
    assert lock is not None
    try:
        found = peaks(capfd)
    finally:
        lock.release()
    assert found["state"] == "note"
    assert "not measured" in found["text"]
    assert "night" in found["text"]
    assert found["do"]


@pytest.mark.cc
def test_a_session_records_the_measured_rates_and_its_profiles_use_them(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shape = "M=64,N=64,K=64"
    words = ("run", "matmul_bias_relu", "--backend", "cpu", "--shape", shape, "--name", "a", "--headless")
    shell(*words, "--candidates", "1", "--agent", "random")
    session = tmp_path / "sessions" / "a"
    first = json.loads((session / "journal.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert first["kind"] == ev.SessionCreated.__name__
    assert first["device"]["peak_gflops"] > 0.0
    assert first["device"]["memory_gbps"] > 0.0
    feedback = json.loads((session / "candidates" / "0" / "feedback.json").read_text(encoding="utf-8"))
    profile, perf = feedback["profile"], feedback["perf"]
    assert profile["source"] == "static+model"
    reached_gflops = 2.0 * 64**3 / perf["avg_us"] / 1e3
    assert profile["sm_busy_pct"] == pytest.approx(100.0 * reached_gflops / first["device"]["peak_gflops"], rel=0.01)
    # each input read once, the output written once, four bytes an element
    moved_gbps = 4.0 * (3 * 64 * 64 + 64) / perf["avg_us"] / 1e3
    assert profile["memory_throughput_pct"] == pytest.approx(
        100.0 * moved_gbps / first["device"]["memory_gbps"], rel=0.01
    )
