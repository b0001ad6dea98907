"""Beside the rounds: a queue for the profiler, and memory and race checkers for the best and for suspects.

The loop waits meanwhile, so that nothing is timed. What the profiler says reaches the next round; what it refuses is
said once with its cure, and feedback goes on from static sources.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import msgspec

from cake_tui.errors import Ended
from cake_tui.ir.cost import CostRow
from cake_tui.model import event as ev
from cake_tui.model.facts import Profile
from cake_tui.model.finding import Finding
from cake_tui.model.history import History
from cake_tui.model.jobs import Inspect, Inspected, Tool
from cake_tui.model.outcome import Measured
from cake_tui.model.row import Row
from cake_tui.rules import Evidence
from cake_tui.steps import compare, explain, keep, profile, tell
from cake_tui.steps.context import Context, Explained

Events = Generator[ev.Event, None, None]

LIMIT_S = 60.0
REPLAYS = 60  # of a kernel, at most, with what saves and restores memory around each
MOST = 8  # candidates of one call
LOOK_BACK = 128  # rows: older rounds have had their turn
CHECKERS: tuple[Tool, ...] = ("memcheck", "racecheck")
# What is gone with another user or another installation; anything else may work the next time.
LASTING = ("no ncu", "no compute-sanitizer", "administrators alone", "backend has no")
LOST = "device"  # the guard that pauses a run whose device is gone: no tool gets further than the run
DISPROVED = 0.25  # of what was expected, in ln units
PATIENCE = 2  # failures of other kinds in a row


def after_round(ctx: Context, number: int) -> Events:
    """Check a suspect and profile who waits, within the share of the time that they may take."""
    if not ctx.executor.has_tools:
        return
    for suspect in _suspects(ctx, number)[:1]:
        if _affordable(ctx):
            yield from _sanitized(ctx, suspect)
    asked, turn = ctx.history.wanted_profiles, number % ctx.settings.profiling.profile_rounds == 0
    if asked or (turn and "ncu" not in ctx.refused and _affordable(ctx)):
        yield from _profiled(ctx, waiting(ctx.history, ctx.settings.profiling.profile_top))
    yield from _wanted_checks(ctx)


def idle(ctx: Context) -> Events:
    """While nothing else is done (paused, stalled, done): look at the best, and meet what people asked for."""
    if not ctx.executor.has_tools or ctx.history.paused_by == LOST:
        return
    best = ctx.history.incumbent
    if best is not None and ctx.history.rows[best].sanitized is None and "memcheck" not in ctx.refused:
        yield from _sanitized(ctx, best)
    if ctx.history.wanted_profiles:
        yield from _profiled(ctx, list(ctx.history.wanted_profiles)[:MOST])
    yield from _wanted_checks(ctx)


def waiting(history: History, top: int) -> list[int]:
    """Return who is to be profiled: what people asked for, the best, the `top` of each late round, newest first."""
    rounds: dict[int, list[Row]] = {}
    for row in history.rows[-LOOK_BACK:]:
        if row.outcome == "Measured" and row.standing is not None:
            rounds.setdefault(row.round, []).append(row)
    best = [history.incumbent] if history.incumbent is not None else []
    chosen = [*history.wanted_profiles, *best]
    for _, rows in sorted(rounds.items(), reverse=True):
        ranked = sorted(rows, key=lambda row: (-(row.standing or 0.0), row.number))
        chosen += [row.number for row in ranked[:top]]
    asked = set(history.wanted_profiles)
    return [one for one in dict.fromkeys(chosen) if one in asked or not history.rows[one].profiled][:MOST]


# -- the profiler --------------------------------------------------------------------------------------------


def _profiled(ctx: Context, numbers: list[int]) -> Events:
    """One call of the profiler for all of them; findings and feedback are written anew."""
    subjects, failed = [], []
    for number in numbers:
        try:
            subjects.append((number, compare.subject(ctx, number).full))
        except Ended as ended:
            failed.append((number, f"cannot be built again: {ended.outcome.reason}"))
    if not subjects and not failed:
        return
    slowest_s = sum((ctx.history.rows[number].time_us or 0.0) * 1e-6 for number, _ in subjects)
    job = Inspect(ctx.history.problem, "ncu", tuple(subjects), ctx.history.problem.seed)
    found = ctx.executor.inspect(job, LIMIT_S + REPLAYS * slowest_s, ctx.wait) if subjects else Inspected()
    _remember(ctx, "ncu", found)
    profiles, told = [], []
    for seen in found.seen:
        if seen.profile is None:
            failed.append((seen.candidate, seen.failed or "no counters"))
            continue
        counted, findings = _explained(ctx, seen.candidate, seen.profile)
        profiles.append((seen.candidate, counted))
        told.append((seen.candidate, findings))
    yield ev.Profiled(
        seconds=found.seconds, profiles=tuple(profiles), findings=tuple(told), failed=tuple(failed),
        refused=found.refused, cure=found.cure,
    )  # fmt: skip


def _explained(ctx: Context, number: int, counted: Profile) -> tuple[Profile, tuple[Finding, ...]]:
    """Ask the rules again, now with counters; the feedback on file is replaced where its other parts are at hand."""
    row, known = ctx.history.rows[number], ctx.explained.get(number)
    built = compare.subject(ctx, number)
    static = profile.of_build(ctx.history.problem, ctx.history.device, built, row.time_us)
    whole = profile.overlaid(static, counted)
    evidence = known.evidence if known is not None else _evidence_of(ctx, row)
    evidence = msgspec.structs.replace(evidence, profile=whole, facts=built.full_reply.facts)
    findings = explain.ask(ctx, evidence)
    if known is not None:
        told = msgspec.structs.replace(known.told, findings=findings)
        keep.feedback(ctx, number, tell.feedback(told, evidence))
        _correct(ctx, known, whole, row)
    return whole, findings


def _evidence_of(ctx: Context, row: Row) -> Evidence:
    """What is on record of a candidate that an earlier engine measured."""
    time_us = row.time_us or 0.0
    return Evidence(
        problem=ctx.history.problem,
        device=ctx.history.device,
        schedule=row.schedule,
        outcome=Measured(step="gate", verdict=row.verdict, avg_us=time_us, reason=row.reason),  # type: ignore[arg-type]
        time_us=row.time_us,
        pair_noise=ctx.history.pair_noise,
    )


def _correct(ctx: Context, known: Explained, seen: Profile, row: Row) -> None:
    """Teach the cost model what really was: it predicts from an access pattern, the profiler has counted."""
    calm_us = ctx.history.calm_us(row)
    if known.estimate is None or not calm_us:
        return
    terms = dict(known.estimate.terms)
    if "conflicts" in terms and seen.bank_conflict_share is not None:
        expected, terms["conflicts"] = terms["conflicts"], -math.log(max(1.0 - seen.bank_conflict_share, 1.0 / 32.0))
        if expected > 0.0 and terms["conflicts"] < DISPROVED * expected:
            ctx.disproved.add((known.estimate.structure, "conflicts"))
    if "occupancy" in terms and seen.sm_occupancy_pct:
        terms["occupancy"] = math.log(min(seen.sm_occupancy_pct / 100.0, 1.0))
    if terms != dict(known.estimate.terms):
        estimate = known.estimate
        ctx.correction.learn(CostRow(estimate.structure, estimate.roofline_us, tuple(terms.items()), calm_us))


# -- the checkers --------------------------------------------------------------------------------------------


def _wanted_checks(ctx: Context) -> Events:
    for number in ctx.history.wanted_checks:
        yield from _sanitized(ctx, number)


def _sanitized(ctx: Context, number: int) -> Events:
    """Run both checkers over a candidate's smoke build."""
    try:
        subject = compare.subject(ctx, number).smoke
    except Ended as ended:
        for tool in CHECKERS:
            yield ev.Sanitized(candidate=number, tool=tool, seconds=0.0, refused=ended.outcome.reason)
        return
    for tool in CHECKERS:
        job = Inspect(ctx.history.problem, tool, ((number, subject),), ctx.history.problem.seed)
        found = ctx.executor.inspect(job, LIMIT_S, ctx.wait)
        _remember(ctx, tool, found)
        seen = next(iter(found.seen), None)
        refused = found.refused or (seen.failed if seen is not None else "it said nothing")
        yield ev.Sanitized(
            candidate=number, tool=tool, seconds=found.seconds, errors=seen.errors if seen is not None else 0,
            complaints=seen.complaints if seen is not None else (), refused=refused, cure=found.cure,
        )  # fmt: skip


def _suspects(ctx: Context, number: int) -> list[int]:
    """Candidates of a round that wrote where they should not, raced, or took their evaluator down."""
    if "memcheck" in ctx.refused:
        return []
    rows = [row for row in ctx.history.of_round(number) if row.schedule is not None]
    return [row.number for row in rows if row.suspect and row.sanitized is None]


# -- whether, and how long -----------------------------------------------------------------------------------


def _affordable(ctx: Context) -> bool:
    """Whether one more call stays within the share of the running time that tools may take."""
    history = ctx.history
    return history.inspected_s + ctx.call_s <= ctx.settings.profiling.profile_share * history.elapsed_s


def _remember(ctx: Context, tool: Tool, found: Inspected) -> None:
    """Keep how long a call takes, and which tools need not be tried again by themselves."""
    if not found.refused:
        ctx.call_s = max(found.seconds, 1.0)
        ctx.refused.pop(tool, None)
        ctx.stumbled.pop(tool, None)
        return
    ctx.stumbled[tool] = ctx.stumbled.get(tool, 0) + 1
    if ctx.stumbled[tool] >= PATIENCE or any(word in found.refused for word in LASTING):
        ctx.refused[tool] = found.refused
