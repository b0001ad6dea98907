"""The evaluator's side of the CPU: takes jobs, keeps what is worth keeping between them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cake_tui.backends._reference import Referee, Reference, readable
from cake_tui.backends._selftest import self_test
from cake_tui.backends.cpu.checking import Checker
from cake_tui.backends.cpu.first import FirstReferee
from cake_tui.backends.cpu.peers import Peers, time_peer
from cake_tui.backends.cpu.runtime import Runtime
from cake_tui.backends.cpu.subject import Libraries
from cake_tui.backends.cpu.timing import ArmEnded, Repeats, time_pairs
from cake_tui.errors import Ended
from cake_tui.model.device import Device
from cake_tui.model.jobs import (
    Check,
    EvaluatorJob,
    EvaluatorReply,
    Refused,
    SelfTest,
    SelfTested,
    Subject,
    TimePairs,
    TimePeer,
)
from cake_tui.model.outcome import LaunchFailed, WrongAnswer
from cake_tui.model.problem import Problem, Shape

REFERENCE_BYTES = 256 << 20  # of references kept for the candidates that share a round's seed


class CpuHost:
    """Runs jobs over one pool of threads."""

    def __init__(self, store: Path, device: Device) -> None:
        self.runtime = Runtime(device.cores)
        self.libraries = Libraries(self.runtime, store)
        self.repeats = Repeats()
        self.peers = Peers(device.cores)
        self._referee: Referee | None = None
        self._references: OrderedDict[tuple[Shape, str, int], Reference] = OrderedDict()

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
        self.peers.close()

    def _handle(self, job: EvaluatorJob) -> EvaluatorReply:
        # The best beside a peer has run before: it needs no limit, and a short one would be other programs' doing.
        self.runtime.run_limit_s = 0.0 if isinstance(job, SelfTest | TimePeer) else job.run_limit_s
        self.runtime.batch_limit_s = 10.0 * job.sample_ms / 1e3 if isinstance(job, TimePairs) else 0.0
        match job:
            case SelfTest() if job.problem.reference_is_first:
                return SelfTested(True, (), 0.0, 0.0, job.problem.tolerance_abs)  # there is no answer to spoil
            case SelfTest():
                return self_test(job.problem, self._referee_of(job.problem))
            case Check():
                truth = job.truth or job.subject
                referee = self._first(job.problem, truth) or self._referee_of(job.problem)
                return Checker(self.runtime, self.libraries, job, referee, self._reference).check()
            case TimePairs():
                referee = self._first(job.problem, job.holder) or self._referee_of(job.problem)
                return time_pairs(self.runtime, self.libraries, self.repeats, job, referee)
            case TimePeer():
                return time_peer(self.runtime, self.libraries, self.repeats, self.peers, job)

    def _first(self, problem: Problem, truth: Subject) -> FirstReferee | None:
        """Return a referee that runs `truth`, where the problem has no other."""
        self._references = OrderedDict() if problem.reference_is_first else self._references
        return FirstReferee(self.runtime, self.libraries, problem, truth) if problem.reference_is_first else None

    def _referee_of(self, problem: Problem) -> Referee:
        """Return the problem's referee; the last one is kept."""
        if self._referee is None or self._referee.problem != problem:
            readable(problem)
            self._referee = Referee(problem, np, self.runtime.erf)
            self._references.clear()
        return self._referee

    def _reference(self, shape: Shape, input_set: str, seed: int, compute: Callable[[], Reference]) -> Reference:
        """Return a reference, computed once a shape, set and seed; the oldest go when memory is used up."""
        key = (shape, input_set, seed)
        if key not in self._references:
            self._references[key] = compute()
            while sum(map(_bytes, self._references.values())) > REFERENCE_BYTES and len(self._references) > 1:
                self._references.popitem(last=False)
        return self._references[key]


def _bytes(reference: Reference) -> int:
    arrays = (*reference.values.values(), *reference.scales.values())
    return sum(int(np.asarray(array).nbytes) for array in arrays)
