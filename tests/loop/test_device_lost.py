"""A device that is lost in the middle of a run: the run pauses with the reason and goes on where it was."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cake_tui import loop, registry
from cake_tui.errors import ENVIRONMENT, DeviceLost, UserError
from cake_tui.executors import Executor
from cake_tui.model import event as ev
from cake_tui.model.jobs import Check, EvaluatorJob, EvaluatorReply, Lost, SelfTest, TimePairs
from tests.loop.driving import Session

WORDS = "GPU-1 is lost: CUDA_ERROR_NO_DEVICE"


@dataclass
class Flaky:
    """An executor whose device is gone at chosen jobs."""

    inner: Executor
    lost_at: type[EvaluatorJob]
    after: int  # so many jobs of that kind pass
    reply: Lost | None = None  # instead of the loss
    times: int = 1
    seen: int = 0

    def evaluate(self, job: EvaluatorJob, timeout_s: float, wait: Any = None) -> EvaluatorReply:
        if isinstance(job, self.lost_at):
            self.seen += 1
            if self.after < self.seen <= self.after + self.times:
                if self.reply is not None:
                    return self.reply
                raise DeviceLost(WORDS, ENVIRONMENT)
        return self.inner.evaluate(job, timeout_s, wait)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def run(session: Session, **flaky: Any) -> str:
    agent = registry.load("agents", "random")({})
    with session.context(agent) as ctx:
        ctx.executor = Flaky(ctx.executor, **flaky)
        story = loop.run(ctx)
        while True:
            try:
                session.record(next(story))
            except StopIteration as done:
                return str(done.value)
            if session.history.state == "paused":
                session.record(ev.RequestTaken(id="1", who="somebody", what="resume", body={}))


@pytest.mark.parametrize(("lost_at", "after"), [(Check, 3), (TimePairs, 9)])
def test_a_lost_device_pauses_the_run_and_loses_nothing(tmp_path: Path, lost_at: Any, after: int) -> None:
    session = Session(tmp_path, candidates=6)
    run(session, lost_at=lost_at, after=after)
    (paused,) = session.of(ev.PausedByGuard)
    assert paused.guard == "device"
    assert WORDS in paused.reason
    ended = [event.candidate for event in session.of(ev.CandidateEnded)]
    assert sorted(set(ended)) == sorted(ended)
    assert session.history.effective >= 6
    assert not [row for row in session.history.rows if row.outcome == "Crashed"]
    assert not list(session.history.in_flight())


def test_a_device_lost_before_the_run_began_ends_it(tmp_path: Path) -> None:
    session = Session(tmp_path, candidates=3)
    with pytest.raises(DeviceLost, match=WORDS):
        run(session, lost_at=SelfTest, after=0)
    assert not session.of(ev.PausedByGuard)


def test_a_holder_that_crashes_is_tried_again_and_nobody_is_charged(tmp_path: Path) -> None:
    session = Session(tmp_path, candidates=4)
    crash = Lost("CUDA_ERROR_LAUNCH_FAILED", arm="holder")
    run(session, lost_at=TimePairs, after=8, reply=crash, times=2)
    assert not [row for row in session.history.rows if row.outcome == "Crashed"]


def test_a_holder_that_crashes_three_times_stops_the_run(tmp_path: Path) -> None:
    session = Session(tmp_path, candidates=4)
    crash = Lost("CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure", arm="holder")
    with pytest.raises(UserError, match="CUDA_ERROR_LAUNCH_FAILED") as caught:
        run(session, lost_at=TimePairs, after=8, reply=crash, times=3)
    assert caught.value.exit_code == ENVIRONMENT
