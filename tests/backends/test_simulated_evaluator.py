"""The simulated backend in the real executor: real processes that are slow, talk, hang and die."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cake_tui.backends.simulated import SimulatedBackend
from cake_tui.executors.local import Local
from cake_tui.model.jobs import BuildJob, Built, Check, Checked, Lost, NotBuilt, SelfTest, SelfTested, Timed, TimePairs
from cake_tui.model.lowered import Lowered
from tests.backends.simulated_jobs import NAIVE, PACKED, PROBLEM, TILED, lowered, subject


@pytest.fixture
def local(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Local]:
    with Local("simulated", tmp_path, SimulatedBackend().device(request.param)) as executor:
        yield executor


def built(executor: Local, text: Lowered, timeout_s: float = 30.0) -> Built | NotBuilt:
    ((_, reply),) = list(executor.build([BuildJob(text, "full", timeout_s)]))
    return reply


@pytest.mark.parametrize("local", ["ridge"], indirect=True)
def test_a_candidate_goes_through_builds_check_and_times(local: Local) -> None:
    assert isinstance(local.evaluate(SelfTest(PROBLEM), 20.0), SelfTested)
    assert isinstance(built(local, lowered(TILED)), Built)
    assert isinstance(local.evaluate(Check(PROBLEM, subject(TILED), "smoke", 1), 20.0), Checked)
    reply = local.evaluate(TimePairs(PROBLEM, subject(NAIVE), subject(PACKED), 3, 1), 20.0)
    assert isinstance(reply, Timed)
    assert len(reply.series.pairs) == 3


@pytest.mark.parametrize("local", ["ridge,crashed=1"], indirect=True)
def test_a_crash_costs_one_evaluator(local: Local) -> None:
    reply = local.evaluate(Check(PROBLEM, subject(TILED), "smoke", 1), 20.0)
    assert isinstance(reply, Lost)
    assert reply.signal == "SIGSEGV"
    assert not reply.timed_out
    assert isinstance(local.evaluate(Check(PROBLEM, subject(NAIVE), "smoke", 1), 20.0), Checked)


@pytest.mark.parametrize("local", ["ridge,timed_out=1"], indirect=True)
def test_a_hang_ends_at_the_limit_of_a_run(local: Local) -> None:
    reply = local.evaluate(Check(PROBLEM, subject(TILED), "smoke", 1, run_limit_s=0.3), 20.0)
    assert isinstance(reply, Lost)
    assert reply.timed_out
    assert reply.limit_s == 0.3
    assert isinstance(local.evaluate(Check(PROBLEM, subject(NAIVE), "smoke", 1), 20.0), Checked)


@pytest.mark.parametrize("local", ["ridge,compile_hangs=1"], indirect=True)
def test_a_hanging_compiler_is_ended(local: Local) -> None:
    reply = built(local, lowered(TILED), timeout_s=0.4)
    assert isinstance(reply, NotBuilt)
    assert reply.timed_out
    assert isinstance(built(local, lowered(NAIVE)), Built)


@pytest.mark.parametrize("local", ["ridge,log_bytes=3000000,build_failed=1"], indirect=True)
def test_a_talking_compiler_keeps_the_true_size_of_its_log(local: Local) -> None:
    good, bad = built(local, lowered(NAIVE)), built(local, lowered(TILED))
    assert isinstance(good, Built)
    assert good.log_bytes == 3_000_000
    assert len(good.log) < 300_000
    assert isinstance(bad, NotBuilt)
    assert "error: simulated" in bad.reason
    again = built(local, lowered(NAIVE))
    assert isinstance(again, Built)
    assert again.cached
