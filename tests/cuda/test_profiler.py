"""The profiler on a real GPU: several candidates in one call, real counters, and a session that gets them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from cake_tui.executors.local import Local
from cake_tui.model import event as ev
from cake_tui.model.device import Device
from cake_tui.model.jobs import Inspect
from tests.cuda.jobs import build, problem_of, variant

pytestmark = pytest.mark.cuda


def test_one_call_counts_several_candidates(executor: Local, device: Device) -> None:
    lowered = (variant(device.arch), variant(device.arch, "WORKSPACE"))
    subjects = tuple(enumerate(build(executor, *lowered)))
    found = executor.inspect(Inspect(problem_of(), "ncu", subjects, 1), 120.0)
    assert not found.refused, f"{found.refused} {found.cure}"
    assert [seen.candidate for seen in found.seen] == [0, 1]
    for seen in found.seen:
        assert not seen.failed
        profile = seen.profile
        assert profile is not None
        assert profile.source == "ncu"
        for field in ("sm_occupancy_pct", "memory_throughput_pct", "issue_active_pct", "fma_pipe_pct", "active_lanes",
                      "dram_bytes", "sectors_per_load", "regs_per_thread", "waves", "l2_throughput_pct"):  # fmt: skip
            assert getattr(profile, field) is not None, field
        assert sum(share for _, share in profile.stalls) == pytest.approx(1.0, abs=1e-6)
        assert profile.local_accesses == 0
        assert profile.shared_mem_bank_conflicts == 0
        assert (profile.blocks, profile.threads) == (512, 256)  # 256 x 512 results in blocks of 32 x 8
        assert profile.active_lanes == pytest.approx(32.0, abs=0.5)


def test_a_session_hears_from_the_profiler_and_the_checkers(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cake_tui", "run", "matmul_bias_relu", "--backend", "cuda", "--name", "p", "--headless",
         "--shape", "M=256,N=256,K=256", "--candidates", "10", "--sessions", str(tmp_path),
         "--set", "profile_share=1", "--set", "profile_rounds=1"],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (tmp_path / "p" / "journal.jsonl").read_bytes().splitlines()
    events = [msgspec.json.decode(line, type=ev.AnyEvent) for line in lines]
    profiled = [event for event in events if isinstance(event, ev.Profiled)]
    assert profiled
    assert not any(event.refused for event in profiled), profiled[0].refused
    counted = [(number, profile) for event in profiled for number, profile in event.profiles]
    assert all(profile.source == "ncu" and profile.flops for _, profile in counted)
    feedback = msgspec.json.decode((tmp_path / "p" / "candidates" / str(counted[-1][0]) / "feedback.json").read_bytes())
    assert feedback["profile"]["source"] == "ncu"
    checked = {event.tool for event in events if isinstance(event, ev.Sanitized) and not event.refused}
    assert checked == {"memcheck", "racecheck"}
    assert not any(event.errors for event in events if isinstance(event, ev.Sanitized))
