"""Times pairs: holder and candidate in ABBA order on fresh buffers, without a rest for the device between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from cake_tui.backends.cuda.driver import CudaError
from cake_tui.backends.cuda.first import AnyReferee
from cake_tui.backends.cuda.lane import LEAD_SAMPLES, ArmEnded, Lane, Queued, Repeats, Role
from cake_tui.backends.cuda.probes import STAMPS
from cake_tui.backends.cuda.subject import Gpu
from cake_tui.backends.cuda.vault import Vault
from cake_tui.errors import Ended
from cake_tui.model.jobs import Subject, Timed, TimePairs
from cake_tui.model.measure import Clock, Pair, Series
from cake_tui.model.problem import Problem, Shape


class Sample(msgspec.Struct, frozen=True):
    """One batch: microseconds a launch, and the device's clock meanwhile."""

    us: float
    ghz: float | None


def timed_shapes(problem: Problem) -> tuple[Shape, ...]:
    """Return the shapes that a sample runs."""
    return problem.shapes[-1:] if problem.ranking == "last" else problem.shapes


def collect(gpu: Gpu, queued: Sequence[Queued], limit_s: float) -> list[Sample]:
    """Wait for batches on the stream and read them; says in `gpu.arm` whose failed, where one does."""
    gpu.events_taken = 0

    def blame() -> None:
        at = min(max(gpu.probes.last_stamp() // 2 - queued[0].stamp // 2, 0), len(queued) - 1)
        gpu.arm = queued[at].role

    try:
        gpu.finish(limit_s, blame)
    except CudaError:
        blame()
        raise
    rates = gpu.probes.gigahertz(queued[0].stamp, len(queued))
    return [_read(gpu, one, ghz) for one, ghz in zip(queued, rates)]


def _read(gpu: Gpu, one: Queued, ghz: float | None) -> Sample:
    spent = sum(
        gpu.driver.elapsed_us(one.events[at], one.events[at + 1]) for at in range(0, len(one.events), 2)
    )  # fmt: skip
    return Sample(spent / one.repeats, ghz)


def time_pairs(
    gpu: Gpu, vault: Vault, repeats: Repeats, job: TimePairs, referee: AnyReferee, clock: ReadClock
) -> Timed:
    """Time the pairs of one series; raises ArmEnded for what a timed launch did wrong, Ended for both arms."""
    problem = job.problem
    subjects: dict[Role, Subject] = {"holder": job.holder, "candidate": job.candidate}
    lanes: list[Lane] = []
    try:
        for position, shape in enumerate(timed_shapes(problem)):
            lanes.append(Lane(gpu, vault, problem, shape, subjects, job.seed + position, job.run_limit_s))
        work = [Work(lane, repeats, subjects, job.sample_ms) for lane in lanes]
        before = clock()
        pairs: list[Pair] = []
        most = max(STAMPS // (4 * len(lanes)), 1)  # pairs that are on the stream at once
        while len(pairs) < max(job.pairs, 1):
            count = min(most, max(job.pairs, 1) - len(pairs))
            first = [(len(pairs) + at) % 2 == job.seed % 2 for at in range(count)]
            pairs += _pairs(gpu, problem, work, first, job.run_limit_s)
        after = clock()
        for one in work:
            one.lane.judge_memory()
            for role in subjects:
                _judge(one.lane, role, referee, one.launch_us[role])
        series = Series(
            pairs=tuple(pairs), before=before, after=after,
        )  # fmt: skip
    except Ended:
        _free(lanes)
        raise
    _free(lanes)  # not after other errors: the process is of no use any more and must not wait for the device
    return Timed(series)


class Work:
    """What one lane's samples are made of: launches a sample and about how long each takes, by arm."""

    def __init__(self, lane: Lane, repeats: Repeats, subjects: Mapping[Role, Subject], sample_ms: float) -> None:
        self.lane, self.sample_ms = lane, sample_ms
        self.launch_us = {role: repeats.launch_us(lane, role, subject) for role, subject in subjects.items()}
        self.counts = {role: lane.repeats(self.launch_us[role], sample_ms) for role in subjects}

    @property
    def seconds(self) -> float:
        """About how long one sample of each arm takes, with the lead of a whole series."""
        us = sum(self.launch_us[role] * count for role, count in self.counts.items())
        return (1.0 + LEAD_SAMPLES) * us * 1e-6

    def lead(self) -> None:
        """Put the lead on the stream."""
        self.lane.lead(self.counts, self.launch_us, self.sample_ms)


def _pairs(gpu: Gpu, problem: Problem, work: Sequence[Work], first: Sequence[bool], run_limit_s: float) -> list[Pair]:
    """Run pairs without a rest between them; `first` says for each whether the holder comes first."""
    for one in work:
        one.lead()
    queued: list[Queued] = []
    for holder_first in first:
        order: tuple[Role, Role] = ("holder", "candidate") if holder_first else ("candidate", "holder")
        for one in work:
            for role in order:
                queued.append(one.lane.queue(role, one.counts[role], len(queued)))
    seconds = sum(one.seconds for one in work) * len(first)
    samples = iter(zip(queued, collect(gpu, queued, run_limit_s + 3.0 * seconds)))
    pairs = []
    for holder_first in first:
        taken: dict[Role, list[Sample]] = {"holder": [], "candidate": []}
        for _ in range(2 * len(work)):
            one_queued, sample = next(samples)
            taken[one_queued.role].append(sample)
        pairs.append(_pair(problem, taken, holder_first))
    return pairs


class ReadClock:
    """Reads the device's clocks right before and right after a series; gives nothing where no monitor watches it."""

    def __init__(self, monitor: Any) -> None:
        self._read = getattr(monitor, "read_device", None)

    def __call__(self) -> Clock | None:
        """Take one reading."""
        return self._read() if self._read is not None else None


def _free(lanes: list[Lane]) -> None:
    for lane in lanes:
        lane.free()


def _pair(problem: Problem, taken: Mapping[Role, list[Sample]], holder_first: bool) -> Pair:
    """Combine the samples of all shapes; the clock is that of the last one."""
    holder, candidate = taken["holder"], taken["candidate"]
    return Pair(
        problem.ranked([one.us for one in holder]), problem.ranked([one.us for one in candidate]), holder_first,
        holder[-1].ghz, candidate[-1].ghz,
    )  # fmt: skip


def _judge(lane: Lane, role: Role, referee: AnyReferee, launch_us: float) -> None:
    """Judge what the last timed launch of an arm wrote; raises ArmEnded."""
    try:
        lane.judge(role, referee, launch_us)
    except Ended as ended:
        raise ArmEnded(ended.outcome, role) from None
