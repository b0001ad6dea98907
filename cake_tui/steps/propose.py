"""Steps 1 to 6 of a round: the agent proposes, proposals become plans; what ends here is journaled."""

from __future__ import annotations

import random
from collections.abc import Generator

import msgspec

from cake_tui.errors import Ended
from cake_tui.model import event as ev
from cake_tui.model.move import Level, Proposal
from cake_tui.model.outcome import Outcome, Screened
from cake_tui.model.row import Queued
from cake_tui.model.schedule import Schedule
from cake_tui.steps import budget, explain, keep, plan, screen
from cake_tui.steps.context import Attempt, Context


def begin(ctx: Context, *, ahead: bool = False) -> Generator[ev.Event, None, list[Attempt]]:
    """Steps 1 to 6 of the next round: proposals become plans; what ends here is journaled, the rest is `Planned`.

    One that is begun `ahead`, while the round before is timed, knows that one not yet. It leaves slots to the moves
    that people wait for: `injected` takes them up when the round's turn comes.
    """
    history, proposing = ctx.history, ctx.settings.proposing
    changed = ctx.menu.poll()
    if changed is not None:
        yield changed
    menu = ctx.menu.current(history)
    for queued in [one for one in history.queue.values() if one.moves and menu.reverts(one.moves[0])]:
        yield _reverted(ctx, queued.who, queued.reason, queued.id)
    while ctx.reverts:
        asked = ctx.reverts.pop(0)
        yield _reverted(ctx, asked.who, asked.reason, None)
    room = max(1, budget.left(history, ctx.settings))
    number, knew = history.round + 1, history.round - 1 if ahead else None
    yield ev.RoundBegan(round=number, size=proposing.round, incumbent=history.incumbent, knew_round=knew)
    attempts = [] if ahead else (yield from injected(ctx))
    kept_free = len(_waiting(ctx)) if ahead else 0
    size = min(proposing.round, room)
    wanted = size * (proposing.propose_factor if proposing.screen else 1)
    rng = random.Random(f"{history.problem.seed}/{number}")
    drafts: list[plan.Draft] = []
    for proposal in ctx.agent.propose(history, menu, wanted, rng):
        if proposal.moves and menu.reverts(proposal.moves[0]):
            ctx.reverts.append(proposal)
        elif proposal.chosen_by == "person":  # never screened
            yield from _unscreened(ctx, proposal, attempts)
        else:
            drafts += yield from _drafted(ctx, proposal)
    slots = max(0, size - len(attempts) - kept_free)
    kept, dropped = screen.screen(drafts, slots, proposing, random.Random(rng.random()))
    # Ties and audits come on top of the round, but not on top of the budget.
    last = max(0, room - len(attempts) - kept_free)
    kept, dropped = kept[:last], kept[last:] + dropped
    while kept:
        event = _taken(ctx, kept.pop(0), attempts)
        yield event
        if not isinstance(event, ev.Planned) and dropped:  # its slot goes to the best of those screened out
            best = min(dropped, key=lambda draft: draft.estimate.predicted_us if draft.estimate else 0.0)
            dropped.remove(best)
            kept.append(best)
    for draft in dropped:
        predicted = draft.estimate.predicted_us if draft.estimate else 0.0
        outcome = Screened(step="cost", reason=f"predicted {predicted:.4g} us", predicted_us=predicted)
        ended_event = _refused(ctx, draft.proposal, draft.level, draft.schedule, outcome)
        yield msgspec.structs.replace(ended_event, predicted_us=predicted)
    return attempts


def injected(ctx: Context) -> Generator[ev.Event, None, list[Attempt]]:
    """Plan what people wait for, from the incumbent as it is now; never screened."""
    attempts: list[Attempt] = []
    for queued in _waiting(ctx):
        base, why = ctx.history.incumbent or 0, queued.reason or "injected"
        yield from _unscreened(ctx, Proposal(base, queued.moves, why, "person", queued.who, queued.id), attempts)
    return attempts


def _waiting(ctx: Context) -> list[Queued]:
    """Injected moves, oldest first; ``revert_last()`` is none: it makes no candidate."""
    menu = ctx.menu.current(ctx.history)
    return [one for one in ctx.history.queue.values() if one.moves and not menu.reverts(one.moves[0])]


def _unscreened(ctx: Context, proposal: Proposal, attempts: list[Attempt]) -> Generator[ev.Event, None, None]:
    for draft in (yield from _drafted(ctx, proposal)):
        yield _taken(ctx, draft, attempts)


def _drafted(ctx: Context, proposal: Proposal) -> Generator[ev.Event, None, list[plan.Draft]]:
    """Steps 2 to 5: a draft, or none where the event says how the proposal ended."""
    history = ctx.history
    if not 0 <= proposal.base < len(history.rows) or history.rows[proposal.base].standing is None:
        yield ev.ProposalDropped(proposal=proposal, reason=f"candidate {proposal.base} has no time to start from")
        return []
    schedule: Schedule | None = None
    level: Level | None = None
    try:
        schedule, level = plan.rewrite(proposal, history, ctx.menu.current(history))
        return [_draft(ctx, proposal, schedule, level)]
    except Ended as ended:
        yield _refused(ctx, proposal, level, schedule, ended.outcome)
        return []


def _taken(ctx: Context, draft: plan.Draft, attempts: list[Attempt]) -> ev.Planned | ev.CandidateEnded:
    """Step 6: a draft with a source of its own becomes an attempt; one without ends as `Repeated` or `Rejected`."""
    try:
        paper = plan.lower(draft, ctx.history.problem, ctx.history.device)
        plan.refuse_repeated(paper, ctx.history)
    except Ended as ended:
        return _refused(ctx, draft.proposal, draft.level, draft.schedule, ended.outcome)
    attempts.append(Attempt(len(ctx.history.rows), paper))
    return planned(ctx, attempts[-1])


def _refused(
    ctx: Context, proposal: Proposal, level: Level | None, schedule: Schedule | None, outcome: Outcome
) -> ev.CandidateEnded:
    """The only event of a candidate that never was planned, with its feedback written."""
    number = len(ctx.history.rows)
    findings, feedback = explain.refused(ctx, number, proposal, schedule, outcome)
    keep.feedback(ctx, number, feedback)
    return ev.CandidateEnded(
        candidate=number, round=ctx.history.round, outcome=outcome, proposal=proposal, level=level,
        schedule=schedule, findings=findings,
    )  # fmt: skip


def _reverted(ctx: Context, who: str, reason: str, request: str | None) -> ev.Event:
    """``revert_last()``: the incumbent's parent becomes the next base; refused at candidate 0."""
    history = ctx.history
    holder = ctx.holder
    if holder > 0:
        return ev.BaseReverted(base=history.rows[holder].proposal.base, who=who, reason=reason, request=request)
    text = "revert_last(): the incumbent is candidate 0, which has no parent"
    if request is not None:
        return ev.RequestRefused(id=request, who=who, what="inject", reason=text)
    return ev.Noticed(level="info", text=f"{text} (asked by {who})")


def on_paper(ctx: Context, proposal: Proposal, schedule: Schedule, level: Level | None) -> plan.Plan:
    """Steps 3 to 6 with what was learnt in the prediction; raises Ended(Rejected)."""
    return plan.lower(_draft(ctx, proposal, schedule, level), ctx.history.problem, ctx.history.device)


def _draft(ctx: Context, proposal: Proposal, schedule: Schedule, level: Level | None) -> plan.Draft:
    history = ctx.history
    draft = plan.draft(proposal, schedule, level, history.problem, history.device, ctx.texts)
    if draft.estimate is None:
        return draft
    return msgspec.structs.replace(draft, estimate=ctx.correction.apply(draft.estimate))


def planned(ctx: Context, attempt: Attempt) -> ev.Planned:
    """Keep the candidate's texts and give the event that makes it one."""
    paper = attempt.plan
    keep.plan(ctx, attempt.number, paper)
    return ev.Planned(
        candidate=attempt.number, round=ctx.history.round, proposal=paper.proposal, level=paper.level,
        schedule=paper.schedule, predicted_us=paper.estimate.predicted_us if paper.estimate else None,
        source_sha256=paper.full.sha256, audit=paper.audit,
    )  # fmt: skip
