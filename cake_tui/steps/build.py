"""Step 7: compile the full and the smoke build of all candidates of a round, in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from cake_tui.errors import Ended
from cake_tui.executors import Executor, Wait
from cake_tui.model.jobs import BuildJob, Built, NotBuilt, Subject
from cake_tui.model.lowered import Lowered
from cake_tui.model.outcome import BuildFailed, Outcome, TimedOut
from cake_tui.steps.plan import Plan

Jobs = tuple[BuildJob, BuildJob]
"""The full and the smoke build of a candidate."""


class Binaries(msgspec.Struct, frozen=True):
    """Both builds of a candidate, ready to run."""

    full: Subject
    smoke: Subject
    full_reply: Built
    seconds: float
    cached: bool


def jobs_of(plan: Plan, smoke: Callable[[Plan], Lowered], compile_s: float) -> Jobs:
    """Lower the smoke build and say what is to be compiled; raises Ended(Rejected)."""
    return BuildJob(plan.full, "full", compile_s), BuildJob(smoke(plan), "smoke", compile_s)


def build(candidates: Sequence[Jobs], executor: Executor, wait: Wait) -> Iterator[tuple[int, Binaries | Outcome]]:
    """Yield (position, binaries or how it ended) as each candidate's second build ends, in the order of positions."""
    jobs = [job for pair in candidates for job in pair]
    replies: dict[int, Built] = {}
    ended: dict[int, Binaries | Outcome] = {}
    told = 0
    for at, reply in executor.build(jobs, wait):
        index, full = at // 2, at - at % 2
        if index in ended:
            continue
        if isinstance(reply, NotBuilt):
            ended[index] = failure(reply, jobs[at].timeout_s)
        else:
            replies[at] = reply
            if full in replies and full + 1 in replies:
                ended[index] = _binaries(jobs[full], replies[full], jobs[full + 1], replies[full + 1])
        while told in ended:
            yield told, ended[told]
            told += 1


def build_one(
    plan: Plan, smoke: Callable[[Plan], Lowered], executor: Executor, compile_s: float, wait: Wait
) -> Binaries:
    """Build one candidate (from the cache, where it was built before); raises Ended."""
    for _, result in build([jobs_of(plan, smoke, compile_s)], executor, wait):
        if isinstance(result, Binaries):
            return result
        raise Ended(result)
    raise RuntimeError("the executor answered no build job")


def _binaries(full_job: BuildJob, full: Built, smoke_job: BuildJob, smoke: Built) -> Binaries:
    return Binaries(
        full=Subject(full.binary_sha256, full_job.lowered),
        smoke=Subject(smoke.binary_sha256, smoke_job.lowered),
        full_reply=full,
        seconds=full.seconds + smoke.seconds,
        cached=full.cached and smoke.cached,
    )


def failure(reply: NotBuilt, compile_s: float) -> Outcome:
    """Say how a candidate ended that was not built within `compile_s` seconds, or at all."""
    if reply.timed_out:
        reason = f"compiler ended after {compile_s:g} s"
        return TimedOut(step="build", reason=reason, limit_s=compile_s, log=reply.log, log_bytes=reply.log_bytes)
    return BuildFailed(step="build", reason=reply.reason, log=reply.log, log_bytes=reply.log_bytes)
