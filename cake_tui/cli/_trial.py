"""Builds and runs one schedule outside of a session: what `check` and `doctor --gate` share."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cake_tui.cli._device import Chosen
from cake_tui.config import user_name
from cake_tui.errors import Ended
from cake_tui.executors.local import Local
from cake_tui.model.device import Device
from cake_tui.model.facts import Agreement
from cake_tui.model.jobs import (
    BuildJob,
    Built,
    Check,
    NotBuilt,
    SelfTested,
    Subject,
    Timed,
    TimePairs,
)
from cake_tui.model.lowered import Lowered
from cake_tui.model.measure import Series
from cake_tui.model.move import Proposal
from cake_tui.model.outcome import BuildFailed, Outcome, WrongAnswer, kind_of
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Schedule
from cake_tui.steps import check, plan
from cake_tui.steps.build import failure
from cake_tui.steps.measure import Ask, Take
from cake_tui.store.lock import take_device

COMPILE_S = 120.0
RUN_LIMIT_S = 30.0
SELF_TEST_S = 120.0
SERIES_S = 300.0


@dataclass(frozen=True)
class Trial:
    """An executor of its own with an empty store, for one problem; all of it goes when the trial ends."""

    problem: Problem
    chosen: Chosen
    executor: Local
    smoke_fraction: float

    def on_paper(self, schedule: Schedule) -> plan.Plan:
        """Build the program of a schedule, judge and lower it; raises Ended(Rejected)."""
        start = Proposal(0, (), "", "start", "")
        draft = plan.draft(start, schedule, None, self.problem, self.chosen.device, {})
        return plan.lower(draft, self.problem, self.chosen.device)

    def smoke(self, schedule: Schedule) -> Lowered:
        """Lower the smoke build of a schedule; raises Ended(Rejected)."""
        return plan.smoke_build(schedule, self.problem, self.chosen.device, self.smoke_fraction, {})

    def build(self, lowered: Lowered) -> tuple[Subject, Built]:
        """Compile one lowered value; raises Ended(BuildFailed | TimedOut)."""
        for _, reply in self.executor.build([BuildJob(lowered, "full", COMPILE_S)]):
            if isinstance(reply, NotBuilt):
                raise Ended(failure(reply, COMPILE_S))
            return Subject(reply.binary_sha256, lowered), reply
        raise RuntimeError("the executor answered no build job")

    def self_test(self) -> SelfTested:
        """Ask whether the check tells right from wrong for this problem; no kernel runs."""
        return check.ask_self_test(self.problem, self.executor, SELF_TEST_S)

    def check_smoke(self, subject: Subject, seed: int) -> Agreement:
        """Check a smoke build at its small shapes; raises Ended with how it failed."""
        return check.ask(Check(self.problem, subject, "smoke", seed, RUN_LIMIT_S), self.executor)

    def self_pairs(self, subject: Subject, sample_ms: float, seed: int) -> Take:
        """Return what answers every ask by timing `subject` against itself on fresh buffers."""
        rng = random.Random(seed)

        def take(ask: Ask) -> Series:
            job = TimePairs(self.problem, subject, subject, ask.pairs, rng.getrandbits(31), sample_ms, RUN_LIMIT_S)
            return check.answered(self.executor.evaluate(job, SERIES_S), Timed, "measure").series

        return take


@contextmanager
def trial(problem: Problem, chosen: Chosen, what: str, smoke_fraction: float) -> Iterator[Trial]:
    """Hold the device and an executor for one trial; raises UserError (BUSY) where a session uses the device."""
    with held(chosen.device, what), tempfile.TemporaryDirectory(prefix="cake-tui-trial-") as scratch:
        executor = Local(chosen.name, Path(scratch), chosen.device)
        try:
            yield Trial(problem, chosen, executor, smoke_fraction)
        finally:
            executor.close()


@contextmanager
def held(device: Device, what: str) -> Iterator[None]:
    """Hold a device meanwhile; raises UserError (BUSY) with who uses it, for both would time the other's noise."""
    lock = take_device(device.uuid, what, user_name())
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


def said(outcome: Outcome) -> str:
    """Say in one line how a kernel ended."""
    if isinstance(outcome, BuildFailed):
        return f"it does not build: {outcome.reason}"
    if isinstance(outcome, WrongAnswer):
        return f"wrong answer ({outcome.failure}, inputs {outcome.input_set}, {outcome.shape}): {outcome.reason}"
    return f"{kind_of(outcome)}: {outcome.reason}"
