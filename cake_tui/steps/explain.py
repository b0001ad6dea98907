"""Step 12: what was measured becomes findings, feedback and a summary of the round; failures are explained too."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from cake_tui import registry, rules
from cake_tui.model.facts import Profile
from cake_tui.model.feedback import BestSoFar, Feedback
from cake_tui.model.finding import Finding
from cake_tui.model.history import History
from cake_tui.model.move import Proposal
from cake_tui.model.outcome import Measured, Outcome, Rejected
from cake_tui.model.row import Row
from cake_tui.model.schedule import KnobValue, Schedule
from cake_tui.rules import Evidence, Rule
from cake_tui.steps import gpu_clock, profile, tell
from cake_tui.steps.context import Attempt, Context, Explained

RULES = Path("rules")  # the user's own words, in the working folder
KINDS = ("structural", "numeric", "trust")  # in the order in which they are told
FAILED_TWICE = 2
LOSS = 0.5  # of the confidence of a rule whose advice failed twice, and again for every two more
LOOK_BACK = 4096  # candidates: advice that failed longer ago is forgotten
LEAST = 0.02  # confidence below which a finding only distracts
# A median of three spreads by 0.67 of one value's standard deviation (normal distribution).
MEDIAN_OF_THREE = 0.67
MOST_TRENDS = 8

Hints = Mapping[str, Sequence[str]]
"""Usable action -> rules whose findings suggest it, as actions.toml says."""


# -- findings ------------------------------------------------------------------------------------------------


def find(evidence: Evidence, hints: Hints, folder: Path | None = None) -> tuple[Finding, ...]:
    """Ask every rule; structural findings first, then numbers, then trust, each the most confident first.

    A finding's advice is its rule's *Try* text, from `folder` where the user has written one. It suggests the
    rule's own actions that can be used, and those whose hints name the rule.
    """
    found = []
    for name, rule in _rules():
        finding = rule(evidence)
        if finding is None:
            continue
        halvings = evidence.failed_advice.get(name, 0) // FAILED_TWICE
        confidence = finding.confidence * LOSS**halvings
        if not confidence >= LEAST:
            continue
        suggested = [action for action in finding.actions if action in hints]
        suggested += [action for action, whys in hints.items() if name in whys]
        found.append(
            msgspec.structs.replace(
                finding,
                confidence=round(confidence, 3),
                advice=finding.advice or rules.text(name, folder).advice,
                actions=tuple(dict.fromkeys(suggested)),
            )
        )
    return tuple(sorted(found, key=lambda one: (KINDS.index(one.kind), -one.confidence, one.rule)))


@lru_cache(maxsize=1)
def _rules() -> tuple[tuple[str, Rule], ...]:
    """Every rule by name; a rule's file does not change while a run goes on, its text may."""
    return tuple((name, registry.load("rules", name)) for name in registry.names("rules"))


def failed_advice(history: History, hints: Hints) -> dict[str, int]:
    """Count, by rule, how often its advice was followed on this kernel since it last brought a win.

    Advice was followed where a proposal chosen by a finding makes a move that the rule suggests, from a base
    that the rule had spoken about.
    """
    failed: dict[str, int] = {}
    for row in history.rows[-LOOK_BACK:]:
        if row.proposal.chosen_by != "finding" or row.outcome in (None, "Screened", "Repeated", "Interrupted"):
            continue
        if not 0 <= row.proposal.base < len(history.rows):
            continue
        spoken = {label.replace(" ", "_") for label in history.rows[row.proposal.base].labels}
        suggested = {rule for move in row.proposal.moves for rule in hints.get(move.action, ())}
        for rule in spoken & suggested:
            failed[rule] = 0 if row.verdict == "accepted" else failed.get(rule, 0) + 1
    return failed


def hints_of(ctx: Context) -> Hints:
    """Return the usable actions of the menu as it is now with their hints."""
    return {action.name: action.hints for action in ctx.menu.current(ctx.history).actions if action.usable}


def evidence_of(ctx: Context, attempt: Attempt, outcome: Outcome, seen: Profile | None) -> Evidence:
    """Gather what was seen of a candidate that got as far as `attempt`."""
    paper = attempt.plan
    estimate = paper.estimate
    terms: Iterable[tuple[str, float]] = (
        ()
        if estimate is None
        else ((name, value) for name, value in estimate.terms if (estimate.structure, name) not in ctx.disproved)
    )
    return Evidence(
        problem=ctx.history.problem,
        device=ctx.history.device,
        schedule=paper.schedule,
        outcome=outcome,
        time_us=profile.time_of(outcome),
        facts=attempt.binaries.full_reply.facts if attempt.binaries is not None else None,
        agreement=attempt.agreement,
        profile=seen,
        gate=attempt.gate,
        pair_noise=ctx.history.pair_noise,
        terms=dict(terms),
    )


def findings(ctx: Context, attempt: Attempt, outcome: Outcome, seen: Profile | None) -> tuple[Finding, ...]:
    """Return what the rules say about a candidate that has just ended."""
    return ask(ctx, evidence_of(ctx, attempt, outcome, seen))


def ask(ctx: Context, evidence: Evidence) -> tuple[Finding, ...]:
    """Return what the rules say about a candidate in this session, with what its advice has led to so far."""
    hints = hints_of(ctx)
    failed = failed_advice(ctx.history, hints)
    return find(msgspec.structs.replace(evidence, failed_advice=failed), hints, RULES)


# -- feedback ------------------------------------------------------------------------------------------------


def feedback(
    ctx: Context, attempt: Attempt, outcome: Outcome, found: tuple[Finding, ...], seen: Profile | None
) -> Feedback:
    """Return the feedback of a candidate that has just ended; a new best is already named as such."""
    series = attempt.coarse.series if attempt.coarse is not None else ()
    told = tell.Told(
        number=attempt.number,
        action=attempt.plan.proposal.text,
        best=_best(ctx.history, attempt.number, outcome),
        runs_us=attempt.coarse.runs_us if attempt.coarse is not None else (),
        findings=found,
        round=_round_so_far(ctx.history),
        clock=series[-1].after if series else None,
        device_ghz=gpu_clock.median_ghz(series),
        stale_codes=_stale_codes(attempt),
        built=attempt.binaries is not None,
    )
    evidence = evidence_of(ctx, attempt, outcome, seen)
    if isinstance(outcome, Measured):
        ctx.remember(attempt.number, Explained(told, evidence, attempt.plan.estimate))
    return tell.feedback(told, evidence)


def _stale_codes(attempt: Attempt) -> tuple[str, ...]:
    """Codes that fired or held around the candidate's series, each once."""
    coarse = attempt.coarse.stale_codes if attempt.coarse is not None else ()
    gated = attempt.gate.stale_codes if attempt.gate is not None else ()
    return tuple(dict.fromkeys(coarse + gated))


def refused(
    ctx: Context, number: int, proposal: Proposal, schedule: Schedule | None, outcome: Outcome
) -> tuple[tuple[Finding, ...], Feedback]:
    """Explain a candidate that ended before it was planned: an edit, a law, the screen or the record."""
    history, hints = ctx.history, hints_of(ctx)
    evidence = Evidence(
        problem=history.problem,
        device=history.device,
        schedule=schedule,
        outcome=outcome,
        profile=profile.counters(history.problem, history.device, None) if isinstance(outcome, Rejected) else None,
        failed_advice=failed_advice(history, hints),
    )
    # Only the refusal itself is known here; what a schedule alone suggests would drown it.
    found = tuple(one for one in find(evidence, hints, RULES) if one.rule == "over_limit")
    told = tell.Told(
        number, proposal.text, _best(history, number, outcome), findings=found, round=_round_so_far(history)
    )
    return found, tell.feedback(told, evidence)


def _best(history: History, number: int, outcome: Outcome) -> BestSoFar:
    if isinstance(outcome, Measured) and (outcome.verdict == "accepted" or number == 0):
        return BestSoFar(None, outcome.avg_us, number)
    return BestSoFar(None, history.incumbent_us, history.incumbent)


def _round_so_far(history: History) -> Mapping[str, Any]:
    """The latest summary: that of the round before, while this one is open."""
    return history.last_round_summary or {"number": history.round, "trends": [], "structures": []}


# -- the summary of a round ----------------------------------------------------------------------------------


def summary(history: History, rows: Sequence[Row], pair_noise: float) -> dict[str, Any]:
    """Return the slope of every knob that a candidate changed by itself, and how each structure did.

    `change_pct` is the change of speed from the base, positive for faster; `noise_pct` the standard error of
    such a change, from medians of three pairs. `structures` gives candidates, those with a time, and the best
    change of speed against candidate 0.
    """
    number = rows[0].round if rows else history.finished_round + 1
    return {"number": number, "trends": _trends(history, rows, pair_noise), "structures": _structures(rows)}


def _trends(history: History, rows: Sequence[Row], pair_noise: float) -> list[dict[str, Any]]:
    steps: dict[tuple[str, KnobValue | None, KnobValue | None], list[float]] = {}
    for row in rows:
        base = history.rows[row.proposal.base] if row.proposal.base < len(history.rows) else row
        changed = _only_change(base.schedule, row.schedule)
        if changed is None or base.standing is None or row.standing is None:
            continue
        steps.setdefault(changed, []).append(row.standing - base.standing)
    told = [
        {
            "knob": knob,
            "from": before,
            "to": after,
            "change_pct": round(100.0 * math.expm1(statistics.median(gains)), 3),
            "noise_pct": round(100.0 * MEDIAN_OF_THREE * pair_noise / math.sqrt(len(gains)), 3),
        }
        for (knob, before, after), gains in steps.items()
    ]
    return sorted(told, key=lambda one: -abs(float(str(one["change_pct"]))))[:MOST_TRENDS]


def _only_change(
    before: Schedule | None, after: Schedule | None
) -> tuple[str, KnobValue | None, KnobValue | None] | None:
    """Return the one knob that differs with its two values; None where more, or the structure, differ."""
    if before is None or after is None or before.structure != after.structure:
        return None
    names = dict.fromkeys([name for name, _ in (*before.knobs, *after.knobs)])
    changed = [(name, before.knob(name), after.knob(name)) for name in names if before.knob(name) != after.knob(name)]
    return changed[0] if len(changed) == 1 else None


def _structures(rows: Sequence[Row]) -> list[dict[str, Any]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row.schedule is not None:
            groups.setdefault(row.schedule.structure, []).append(row)
    told = []
    for structure, members in sorted(groups.items()):
        standings = [row.standing for row in members if row.standing is not None]
        told.append(
            {
                "structure": structure,
                "candidates": len(members),
                "measured": sum(row.outcome == "Measured" for row in members),
                "accepted": sum(row.verdict == "accepted" for row in members),
                "best_speedup": float(f"{math.exp(max(standings)):.4g}") if standings else None,
            }
        )
    return told
