"""Step 8: check a candidate against its float64 reference, first the smoke build, then the ranked shapes."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from cake_tui.errors import Ended, UserError
from cake_tui.executors import Executor, Wait
from cake_tui.model.facts import Agreement
from cake_tui.model.jobs import Check, Checked, EvaluatorReply, Lost, Refused, SelfTest, SelfTested, Timed
from cake_tui.model.outcome import Crashed, TimedOut
from cake_tui.model.problem import Problem
from cake_tui.steps.build import Binaries

Reply = TypeVar("Reply", SelfTested, Checked, Timed)


def self_test(problem: Problem, executor: Executor, limit_s: float, wait: Wait) -> SelfTested:
    """Prove that the check tells right from wrong; raises UserError with the figures where it does not."""
    reply = ask_self_test(problem, executor, limit_s, wait)
    if not reply.passed:
        wrong = "; ".join(
            f"{name} was {happened}, must be {expected} (error {error:.3g} of the bound)"
            for name, error, expected, happened in reply.cases
            if expected != happened
        )
        raise UserError(
            f"kernel {problem.kernel}: the check cannot tell right from wrong for these inputs: {wrong}. "
            f"max|y| = {reply.max_abs_output:.3g}, non-zero elements {reply.nonzero_share:.1%}, tolerance "
            f"{reply.tolerance:.3g}: change fill, scale or tolerance_abs in kernel.toml"
        )
    return reply


def ask_self_test(problem: Problem, executor: Executor, limit_s: float, wait: Wait | None = None) -> SelfTested:
    """Return what the self-test found; raises UserError where a person's own reference ends or blocks its process."""
    reply = executor.evaluate(SelfTest(problem), limit_s, wait)
    if isinstance(reply, Lost) and problem.reference is not None:
        raise UserError(f"reference.py of {problem.kernel}: the process that computes it {_lost(reply)}; mend it")
    if isinstance(reply, Lost):
        raise RuntimeError(f"the self-test of the check died: {reply.reason}")
    if not isinstance(reply, SelfTested):
        raise TypeError(f"unexpected reply {type(reply).__name__}")
    return reply


def _lost(reply: Lost) -> str:
    return f"did not end within {reply.limit_s:g} s" if reply.timed_out else f"ended: {reply.reason}"


def check(
    problem: Problem,
    binaries: Binaries,
    seed: int,
    executor: Executor,
    run_limit_s: float,
    wait: Wait,
    *,
    baseline: bool,
    truth: Binaries | None = None,
) -> Agreement:
    """Return how well the candidate agrees; raises Ended(WrongAnswer | LaunchFailed | Crashed | TimedOut).

    `truth` is candidate 0 where the kernel's first setting is held as truth (``reference = "first"``).
    """
    if baseline:
        return ask(Check(problem, binaries.full, "baseline", seed, run_limit_s), executor, wait)
    # Each build is compared with the truth's build of the same flavour: they serve the same shapes.
    small, large = (truth.smoke, truth.full) if truth is not None else (None, None)
    smoke = ask(Check(problem, binaries.smoke, "smoke", seed, run_limit_s, small), executor, wait)
    full = ask(Check(problem, binaries.full, "full", seed, run_limit_s, large), executor, wait)
    return msgspec.structs.replace(
        full,
        max_abs_err=max(smoke.max_abs_err, full.max_abs_err),
        rel_err=max(smoke.rel_err, full.rel_err),
        worst_unit=max(smoke.worst_unit, full.worst_unit),
        bound_share=max(smoke.bound_share, full.bound_share),
        input_sets=tuple(dict.fromkeys(smoke.input_sets + full.input_sets)),
        shapes=smoke.shapes + full.shapes,
        deterministic=smoke.deterministic and full.deterministic,
    )


def ask(job: Check, executor: Executor, wait: Wait | None = None) -> Agreement:
    """Run one check; raises Ended(WrongAnswer | LaunchFailed | Crashed | TimedOut)."""
    return answered(executor.evaluate(job, _limit_s(job), wait), Checked, "check").agreement


def answered(reply: EvaluatorReply, kind: type[Reply], step: str) -> Reply:
    """Return the reply that a step waits for; raises Ended where it is a candidate's ending instead."""
    if isinstance(reply, kind):
        return reply
    if isinstance(reply, Refused):
        raise Ended(msgspec.structs.replace(reply.outcome, step=step))
    if isinstance(reply, Lost) and reply.timed_out:
        raise Ended(TimedOut(step=step, reason=reply.reason, limit_s=reply.limit_s))
    if isinstance(reply, Lost):
        raise Ended(Crashed(step=step, reason=reply.reason, signal=reply.signal))
    raise TypeError(f"unexpected reply {type(reply).__name__}")


def _limit_s(job: Check) -> float:
    """Outer limit of a check: references in float64 and many runs; each run has its own, much shorter one."""
    work = sum(_volume(dict(shape.sizes)) for shape in job.problem.shapes) if job.depth != "smoke" else 0.0
    return 60.0 + work * 2e-9 + 100 * job.run_limit_s


def _volume(sizes: dict[str, int]) -> float:
    volume = 1.0
    for size in sizes.values():
        volume *= size
    return volume
