"""Peers beside the best: one that cannot run is told once, and tried again by the next engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cake_tui.executors import Executor
from cake_tui.model import event as ev
from cake_tui.model.jobs import EvaluatorJob, EvaluatorReply, Lost, Refused, TimePeer
from cake_tui.model.outcome import LaunchFailed
from cake_tui.steps import compare
from tests.loop.driving import Session
from tests.loop.test_rounds_ahead import Listed, rounds_done

MISSING = Refused(LaunchFailed(reason="torch is not installed"))
CRASHED = Lost("SIGSEGV", signal="SIGSEGV")
OURS = Lost("SIGSEGV", signal="SIGSEGV", arm="holder")


@dataclass
class WithoutTorch:
    """An executor that answers for torch."""

    inner: Executor
    reply: EvaluatorReply
    asked: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def evaluate(self, job: EvaluatorJob, timeout_s: float, wait: Any = None) -> EvaluatorReply:
        if isinstance(job, TimePeer):
            self.asked.append(job.peer)
            if job.peer == "torch":
                return self.reply
        return self.inner.evaluate(job, timeout_s, wait)


def timed_thrice(session: Session, reply: EvaluatorReply) -> list[str]:
    """Have one engine time the peers three times; return who was asked."""
    with session.context(Listed()) as ctx:
        executor = ctx.executor = WithoutTorch(ctx.executor, reply)
        for _ in range(3):
            for event in compare.peers(ctx, pairs=2):
                session.record(event)
        return executor.asked


@pytest.fixture
def session(tmp_path: Path) -> Session:
    made = Session(tmp_path, candidates=24, screen=False)
    made.run(Listed(), lambda event: rounds_done(1)(None, event))  # type: ignore[arg-type]
    assert made.history.session is not None
    problem = msgspec.structs.replace(made.history.problem, peers=("torch", "numpy"))
    made.history.session = msgspec.structs.replace(made.history.session, problem=problem)
    return made


@pytest.mark.parametrize("reply", [MISSING, CRASHED])
def test_a_peer_that_cannot_run_is_told_once_an_engine_and_not_tried_again(
    session: Session, reply: EvaluatorReply
) -> None:
    assert timed_thrice(session, reply) == ["torch", "numpy", "numpy", "numpy"]
    [noticed] = session.of(ev.Noticed)
    for part in ("torch", "torch is not installed" if reply is MISSING else "SIGSEGV", "resume"):
        assert part in noticed.text
    assert [event.peer for event in session.of(ev.PeerTimed)] == ["numpy"] * 3
    timed_thrice(session, reply)  # the next engine
    assert len(session.of(ev.Noticed)) == 2


def test_a_peer_is_not_to_blame_for_the_kernel_beside_it(session: Session) -> None:
    assert timed_thrice(session, OURS) == ["torch", "numpy"] * 3
