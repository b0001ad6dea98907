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


class Binaries(msgspec.Struct, frozen=True):
    """Both builds of a candidate, ready to run."""

    full: Subject
    smoke: Subject
    full_reply: Built
    seconds: float
    cached: bool


def build(
    plans: Sequence[Plan], smoke: Callable[[Plan], Lowered], executor: Executor, compile_s: float, wait: Wait
) -> Iterator[tuple[int, Binaries | Outcome]]:
    """Yield (position in `plans`, its binaries or how it ended) as each candidate's second build ends."""
    jobs: list[BuildJob] = []
    owners: list[int] = []
    for index, plan in enumerate(plans):
        try:
            lowered = smoke(plan)
        except Ended as ended:
            yield index, ended.outcome
            continue
        jobs += [BuildJob(plan.full, "full", compile_s), BuildJob(lowered, "smoke", compile_s)]
        owners += [index, index]
    replies: dict[int, Built] = {}
    ended_already: set[int] = set()
    for at, reply in executor.build(jobs, wait):
        index, full = owners[at], at - at % 2
        if index in ended_already:
            continue
        if isinstance(reply, NotBuilt):
            ended_already.add(index)
            yield index, failure(reply, compile_s)
            continue
        replies[at] = reply
        if full in replies and full + 1 in replies:
            yield index, _binaries(jobs[full], replies[full], jobs[full + 1], replies[full + 1])


def build_one(
    plan: Plan, smoke: Callable[[Plan], Lowered], executor: Executor, compile_s: float, wait: Wait
) -> Binaries:
    """Build one candidate (from the cache, where it was built before); raises Ended."""
    for _, result in build([plan], smoke, executor, compile_s, wait):
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
