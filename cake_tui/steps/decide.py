"""Step 13: end a candidate: learn from it, explain it, write its feedback and give its last event."""

from __future__ import annotations

from collections.abc import Generator

from cake_tui.ir.cost import CostRow
from cake_tui.model import event as ev
from cake_tui.model.outcome import BuildFailed, Crashed, Measured, Outcome, TimedOut
from cake_tui.steps import explain, keep, profile
from cake_tui.steps.context import Attempt, Context


def finish(ctx: Context, attempt: Attempt, outcome: Outcome) -> Generator[ev.Event, None, None]:
    """Give the candidate its outcome: findings, feedback.json and the event that ends it."""
    history, paper = ctx.history, attempt.plan
    row = history.rows[attempt.number]
    if isinstance(outcome, Crashed | TimedOut) and outcome.step != "build":
        yield ev.EvaluatorReplaced(candidate=attempt.number, reason=outcome.reason)
    if isinstance(outcome, BuildFailed | TimedOut):
        keep.failed_build_log(ctx, attempt.number, outcome)
    if isinstance(outcome, Measured) and paper.estimate is not None and (calm_us := history.calm_us(row)):
        ctx.correction.learn(CostRow.of(paper.estimate, calm_us))
    seen = profile.profile(history.problem, history.device, attempt, outcome)
    findings = explain.findings(ctx, attempt, outcome, seen)
    feedback = explain.feedback(ctx, attempt, outcome, findings, seen)
    keep.feedback(ctx, attempt.number, feedback)
    yield ev.CandidateEnded(candidate=attempt.number, round=row.round, outcome=outcome, findings=findings, profile=seen)
