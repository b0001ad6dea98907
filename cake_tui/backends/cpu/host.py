"""The evaluator's side of the CPU: takes jobs, keeps what is worth keeping between them."""

from __future__ import annotations

from pathlib import Path

from cake_tui.backends._reference import Referee
from cake_tui.backends.cpu.runtime import Runtime
from cake_tui.backends.cpu.subject import Libraries
from cake_tui.backends.cpu.timing import ArmEnded, Repeats, time_pairs
from cake_tui.errors import Ended
from cake_tui.model.device import Device
from cake_tui.model.jobs import Check, EvaluatorJob, EvaluatorReply, Refused, SelfTest, TimePairs, TimePeer
from cake_tui.model.outcome import LaunchFailed, WrongAnswer
from cake_tui.model.problem import Problem


class CpuHost:
    """Runs jobs over one pool of threads."""

    def __init__(self, store: Path, device: Device) -> None:
        self.runtime = Runtime(device.cores)
        self.libraries = Libraries(store)
        self.repeats = Repeats()
        self._referee: Referee | None = None

    def watch_faults(self, fd: int) -> None:
        """Have the fault handler write its last word to `fd`."""
        self.runtime.library.cake_watch_faults(fd)

    def handle(self, job: EvaluatorJob) -> EvaluatorReply:
        """Do one job; raises UserError where the problem itself cannot be checked."""
        try:
            return self._handle(job)
        except Ended as ended:
            if not isinstance(ended.outcome, WrongAnswer | LaunchFailed):
                raise
            holder = isinstance(ended, ArmEnded) and ended.arm == "holder"
            return Refused(ended.outcome, "holder" if holder else "candidate")

    def close(self) -> None:
        """End the peers."""

    def _handle(self, job: EvaluatorJob) -> EvaluatorReply:
        match job:
            case TimePairs():
                return time_pairs(self.runtime, self.libraries, self.repeats, job, self._referee_of(job.problem))
            case _:
                raise NotImplementedError

    def _referee_of(self, problem: Problem) -> Referee:
        """Return the problem's referee; the last one is kept."""
        if self._referee is None or self._referee.problem != problem:
            import numpy as np

            self._referee = Referee(problem, np, self.runtime.erf)
        return self._referee
