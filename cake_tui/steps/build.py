"""Step 7: compile the full and the smoke build of all candidates of a round, in parallel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from cake_tui.errors import Ended
from cake_tui.executors import Executor, Wait
from cake_tui.model.jobs import BuildJob, BuildReply, Built, NotBuilt, Subject
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
    plans: Sequence[Plan], executor: Executor, compile_s: float, wait: Wait
) -> Iterator[tuple[int, Binaries | Outcome]]:
    """Yield (position in `plans`, its binaries or how it ended) as each candidate's second build ends."""
    jobs: list[BuildJob] = []
    for plan in plans:
        jobs += [BuildJob(plan.full, "full", compile_s), BuildJob(plan.smoke, "smoke", compile_s)]
    replies: dict[int, BuildReply] = {}
    ended: set[int] = set()
    for job_index, reply in executor.build(jobs, wait):
        replies[job_index] = reply
        index = job_index // 2
        if index in ended:
            continue
        if isinstance(reply, NotBuilt):
            ended.add(index)
            yield index, _failure(reply, compile_s)
        elif 2 * index in replies and 2 * index + 1 in replies:
            ended.add(index)
            yield index, _binaries(plans[index], replies[2 * index], replies[2 * index + 1])


def build_one(plan: Plan, executor: Executor, compile_s: float, wait: Wait) -> Binaries:
    """Build one candidate (from the cache, where it was built before); raises Ended."""
    for _, result in build([plan], executor, compile_s, wait):
        if isinstance(result, Binaries):
            return result
        raise Ended(result)
    raise RuntimeError("the executor answered no build job")


def _binaries(plan: Plan, full: BuildReply, smoke: BuildReply) -> Binaries:
    if not isinstance(full, Built) or not isinstance(smoke, Built):
        raise TypeError("a failed build has no binaries")
    return Binaries(
        full=Subject(full.binary_sha256, plan.full),
        smoke=Subject(smoke.binary_sha256, plan.smoke),
        full_reply=full,
        seconds=full.seconds + smoke.seconds,
        cached=full.cached and smoke.cached,
    )


def _failure(reply: NotBuilt, compile_s: float) -> Outcome:
    if reply.timed_out:
        return TimedOut(step="build", reason=f"compiler ended after {compile_s:g} s", limit_s=compile_s)
    return BuildFailed(step="build", reason=reply.reason, log=reply.log, log_bytes=reply.log_bytes)
