"""THE STORY: a session from start to play-off, one round top to bottom, as a generator of events.

The engine journals each event, folds it into the one shared history and only then asks for the next, so that
the loop reads everything it needs, requests included, from the history. A candidate's failure is data: steps
raise `Ended` and the loop journals the outcome. A rewrite returns a new schedule, so rolling back is only a
pointer that does not move.
"""

from __future__ import annotations

import random
import time
from collections.abc import Generator, Sequence

from cake_tui.errors import ENVIRONMENT, DeviceLost, Ended, UserError
from cake_tui.model import event as ev
from cake_tui.model.measure import GateResult
from cake_tui.model.move import Proposal
from cake_tui.model.outcome import Crashed, Interrupted, Measured, Outcome, Verdict
from cake_tui.model.row import Row
from cake_tui.steps import budget, check, compare, decide, explain, gate, inspect, keep, measure, noise, propose
from cake_tui.steps.build import Binaries, build
from cake_tui.steps.context import Attempt, Context

PEER_EVERY = 5  # rounds between two timings of the peers while the best does not change
QUICK_US = 20_000.0  # pair noise is measured on incumbents faster than this
SELF_TEST_S = 300.0
VERDICTS: dict[str, Verdict] = {"accept": "accepted", "reject": "slower", "undecided": "undecided", "noisy": "noisy"}

Events = Generator[ev.Event, None, None]


def run(ctx: Context) -> Generator[ev.Event, None, str]:
    """Run the session until its budget is spent; return why it is done. Goes on from what the history holds.

    Where the device is lost the run pauses, and goes on from the record once somebody resumes. Raises DeviceLost
    before the check was proved: then there is no run yet to keep.
    """
    while True:
        try:
            return (yield from _run(ctx))
        except DeviceLost as lost:
            if not ctx.history.self_tested:
                raise
            yield ev.PausedByGuard(guard="device", reason=f"{lost}; mend it and resume: nothing is lost")


def _run(ctx: Context) -> Generator[ev.Event, None, str]:
    yield from _start(ctx)
    begun: list[Attempt] | None = None
    while (why := budget.spent(ctx.history, ctx.settings, ctx.goal)) is None:
        begun = yield from _round(ctx, begun)
    for attempt in begun or ():
        yield from decide.finish(ctx, attempt, Interrupted(step=ctx.history.rows[attempt.number].step, reason=why))
    yield from _play_off(ctx)
    yield from compare.peers(ctx, pairs=8)
    yield from inspect.idle(ctx)
    return why


# -- the start -----------------------------------------------------------------------------------------


def _start(ctx: Context) -> Events:
    """Self-test of the check, what an earlier engine left in flight, candidate 0 where there is none."""
    history = ctx.history
    if not history.self_tested:
        tested = check.self_test(history.problem, ctx.executor, SELF_TEST_S, ctx.wait)
        yield ev.SelfTestEnded(cases=tested.cases)
    left = list(history.in_flight())
    if left:
        yield _lost_step(left)
    for number in dict.fromkeys([row.round for row in left]):
        built = yield from _build(ctx, [_again(ctx, row) for row in left if row.round == number])
        yield from _evaluate(ctx, built, number)
        if number > history.finished_round:
            yield from _end_round(ctx, number)
    if history.incumbent is None:
        yield from _baseline(ctx)
    ctx.learn()


def _baseline(ctx: Context) -> Events:
    """Candidate 0, the kernel's first schedule; raises UserError where it cannot be measured."""
    history = ctx.history
    if history.rows:
        raise UserError(f"candidate 0 has no time: {history.rows[0].reason}: see candidates/0/", ENVIRONMENT)
    proposal = Proposal(0, (), "the kernel's first schedule", "start", "start")
    try:
        paper = propose.on_paper(ctx, proposal, ctx.start or ctx.menu.current(history).first, None)
    except Ended as ended:
        raise UserError(f"candidate 0 was refused: {ended.outcome.reason}") from ended
    attempt = Attempt(0, paper)
    yield propose.planned(ctx, attempt)
    yield from _evaluate(ctx, (yield from _build(ctx, [attempt])), 0)
    if history.incumbent is None:
        raise UserError(f"candidate 0 has no time: {history.rows[0].reason}: see candidates/0/", ENVIRONMENT)


def _lost_step(rows: Sequence[Row]) -> ev.StepLost:
    """After a crash, one step was in flight: of the candidate of the older round that was least far."""
    order = ("planned", "build", "check", "measure", "gate")
    first = min(rows, key=lambda row: (row.round, order.index(row.step), row.number))
    return ev.StepLost(candidate=first.number, step=first.step)


def _again(ctx: Context, row: Row) -> Attempt:
    """Rebuild an attempt of an earlier engine from its row; what was built comes from the cache."""
    if row.schedule is None:
        raise ValueError(f"candidate {row.number} was planned without a schedule")
    return Attempt(row.number, propose.on_paper(ctx, row.proposal, row.schedule, row.level))


# -- one round -----------------------------------------------------------------------------------------


def _round(ctx: Context, begun: list[Attempt] | None) -> Generator[ev.Event, None, list[Attempt] | None]:
    """Propose, plan, build, check, measure, gate, explain, decide; return the next round where that was `begun`."""
    if begun is None:
        attempts = yield from propose.begin(ctx)
    else:
        attempts = yield from _with_injected(ctx, begun)
    number = ctx.history.round
    built = yield from _build(ctx, attempts)
    following = yield from _begun_ahead(ctx)
    yield from _evaluate(ctx, built, number)
    yield from _end_round(ctx, number)
    return following


def _begun_ahead(ctx: Context) -> Generator[ev.Event, None, list[Attempt] | None]:
    """Propose and plan the next round before this one is known, and have compilers work on it beside the timing.

    Only where they do not disturb it, and not while structures have their first trials: there each round leans on the
    one before. Nothing is begun that the budget may not have room for.
    """
    proposing = ctx.settings.proposing
    if not (proposing.ahead and ctx.executor.builds_beside_timing) or ctx.history.round <= proposing.trial_rounds:
        return None
    if budget.left(ctx.history, ctx.settings) <= 0 or budget.spent(ctx.history, ctx.settings, ctx.goal):
        return None
    attempts = yield from propose.begin(ctx, ahead=True)
    attempts = yield from _with_jobs(ctx, attempts)
    ctx.executor.build_ahead([job for attempt in attempts for job in attempt.jobs or ()])
    return attempts


def _with_injected(ctx: Context, begun: list[Attempt]) -> Generator[ev.Event, None, list[Attempt]]:
    """Put what people wait for before a round that was begun ahead; what the budget has no room for then, ends."""
    first = yield from propose.injected(ctx)
    while begun and budget.left(ctx.history, ctx.settings) < 0:
        reason = "its place in the budget went to an injected move"
        yield from decide.finish(ctx, begun.pop(), Interrupted(step="planned", reason=reason))
    return first + begun


def _end_round(ctx: Context, number: int) -> Events:
    """Sum the round up, say so when the run is stuck, and look at the peers where it is their turn."""
    history = ctx.history
    rows = history.of_round(number)
    summary = explain.summary(history, rows, ctx.pair_noise)
    yield ev.RoundEnded(round=number, accepted=sum(row.verdict == "accepted" for row in rows), summary=summary)
    if history.rounds_without_win >= ctx.settings.proposing.patience and not history.stalled:
        yield ev.Stalled(rounds=history.rounds_without_win)
        yield from inspect.idle(ctx)
    yield from inspect.after_round(ctx, number)
    if ctx.guard.calibration_due and _is_quick(ctx):
        yield from _calibrated(ctx, ctx.holder)
    timed_against = {peer.against for peer in history.peers.values()}
    if number == 1 or number % PEER_EVERY == 0 or (ctx.goal and timed_against != {history.incumbent}):
        yield from compare.peers(ctx, pairs=2)


def _with_jobs(ctx: Context, attempts: list[Attempt]) -> Generator[ev.Event, None, list[Attempt]]:
    """Lower the smoke builds; those that cannot be, end."""
    for attempt in attempts:
        try:
            attempt.jobs = attempt.jobs or ctx.jobs(attempt.plan)
        except Ended as ended:
            yield from decide.finish(ctx, attempt, ended.outcome)
    return [attempt for attempt in attempts if attempt.jobs is not None]


def _build(ctx: Context, attempts: list[Attempt]) -> Generator[ev.Event, None, list[Attempt]]:
    """Step 7, in parallel: return those that were built."""
    attempts = yield from _with_jobs(ctx, attempts)
    for index, result in build([attempt.jobs for attempt in attempts if attempt.jobs], ctx.executor, ctx.wait):
        attempt = attempts[index]
        if not isinstance(result, Binaries):
            yield from decide.finish(ctx, attempt, result)
            continue
        attempt.binaries = result
        keep.build_log(ctx, attempt.number, result)
        if ctx.history.rows[attempt.number].step == "planned":
            yield ev.BuildEnded(
                candidate=attempt.number, seconds=result.seconds, full_sha256=result.full.binary_sha256,
                smoke_sha256=result.smoke.binary_sha256, facts=result.full_reply.facts, cached=result.cached,
            )  # fmt: skip
    return [attempt for attempt in attempts if attempt.binaries is not None]


def _evaluate(ctx: Context, built: list[Attempt], number: int) -> Events:
    """Steps 8 to 13 for the candidates of a round; each goes on from the last step that its row has on record."""
    history = ctx.history
    # A round shares a seed drawn after its builds, so that nothing in a source can have known the inputs.
    seed = random.Random(f"{history.problem.seed}/{number}/{history.seq}").getrandbits(31)
    contenders: list[Attempt] = []
    for attempt in built:
        if (yield from _check_and_measure(ctx, attempt, seed)):
            contenders.append(attempt)
    contenders.sort(key=lambda attempt: (-(history.rows[attempt.number].standing or 0.0), attempt.number))
    top = ctx.settings.gating.gate_top
    for attempt in contenders[:top]:
        yield from _gate(ctx, attempt)
    for attempt in contenders[top:]:
        avg_us = history.rows[attempt.number].time_us or 0.0
        yield from decide.finish(ctx, attempt, Measured(step="measure", verdict="coarse_only", avg_us=avg_us))


def _check_and_measure(ctx: Context, attempt: Attempt, seed: int) -> Generator[ev.Event, None, bool]:
    """Check, then look 0; return whether it is still a contender."""
    history, row = ctx.history, ctx.history.rows[attempt.number]
    baseline = attempt.number == 0
    try:
        if max(row.lost.values(), default=0) > 1:
            raise Ended(Crashed(step=row.step, reason=f"the step after {row.step} took the engine down twice"))
        if row.step in ("planned", "build"):
            began = time.monotonic()
            first = history.problem.reference_is_first and not baseline
            truth = compare.subject(ctx, 0) if first else None
            limits = (ctx.run_limit_s, ctx.wait)
            agreement = check.check(
                history.problem, attempt.built, seed, ctx.executor, *limits, baseline=baseline, truth=truth
            )
            attempt.agreement = agreement
            seconds = time.monotonic() - began
            yield ev.CheckEnded(candidate=attempt.number, seconds=seconds, agreement=agreement)
        coarse = yield from _coarse(ctx, attempt, baseline)
        if baseline:
            raise Ended(Measured(step="measure", avg_us=coarse.avg_us))
        if gate.look0(coarse.series, ctx.pair_noise) == "reject":
            reason = f"slower than candidate {coarse.against} in every pair"
            raise Ended(Measured(step="measure", verdict="slower", avg_us=coarse.avg_us, reason=reason))
    except Ended as ended:
        yield from decide.finish(ctx, attempt, ended.outcome)
        if baseline and isinstance(ended.outcome, Measured):
            yield from _crowned(ctx, attempt)
        return False
    return True


def _coarse(ctx: Context, attempt: Attempt, baseline: bool) -> Generator[ev.Event, None, ev.Coarse]:
    """Look 0: three interleaved pairs with the incumbent; taken again after a crash, for the machine may differ."""
    history = ctx.history
    yield from _after_gap(ctx)
    began = time.monotonic()
    against = None if baseline else ctx.holder
    holder = attempt.built if against is None else compare.subject(ctx, against)
    taken = measure.coarse(compare.taker(ctx, holder, attempt.built, attempt.number), baseline=baseline)
    codes = ctx.guard.codes
    yield from ctx.guard.events(attempt.number, against)
    attempt.coarse = ev.Coarse(
        candidate=attempt.number, against=against, seconds=time.monotonic() - began, avg_us=taken.avg_us,
        runs_us=taken.runs_us, gain=taken.gain, seed=history.problem.seed, series=taken.series,
        stale_codes=codes,
    )  # fmt: skip
    yield attempt.coarse
    return attempt.coarse


# -- gate and decide -----------------------------------------------------------------------------------


def _match(ctx: Context, number: int, candidate: Binaries, coarse: ev.Coarse | None) -> tuple[GateResult, float]:
    """Gate a candidate against the incumbent as it now is; raises Ended with the candidate's ending."""
    began = time.monotonic()
    take = compare.taker(ctx, compare.subject(ctx, ctx.holder), candidate, number)
    # Pairs with an incumbent that has gone since say nothing about this one.
    fresh = coarse is not None and coarse.against == ctx.holder
    series = coarse.series if coarse is not None and fresh else None
    result = measure.answer(gate.gate(ctx.settings.gating, ctx.pair_noise, series), take)
    return ctx.guard.mark(result), time.monotonic() - began


def _gate(ctx: Context, attempt: Attempt) -> Events:
    """One contender against the incumbent; a new incumbent is published and its noise measured."""
    yield from _after_gap(ctx)
    against = ctx.holder
    outcome: Outcome
    try:
        result, seconds = _match(ctx, attempt.number, attempt.built, attempt.coarse)
        yield from ctx.guard.events(attempt.number, against)
        attempt.gate = result
        yield ev.GateEnded(candidate=attempt.number, against=against, seconds=seconds, result=result)
        avg_us = ctx.history.rows[attempt.number].time_us or result.candidate_us
        outcome = Measured(step="gate", verdict=VERDICTS[result.decision], avg_us=avg_us, reason=result.reason)
    except Ended as ended:
        outcome = ended.outcome
    yield from decide.finish(ctx, attempt, outcome)
    if isinstance(outcome, Measured) and outcome.verdict == "accepted":
        yield from _crowned(ctx, attempt)


def _crowned(ctx: Context, attempt: Attempt) -> Events:
    """After a new incumbent: publish it, and measure the pair noise on it where it is quick enough."""
    ctx.subjects[attempt.number] = attempt.built
    keep.best(ctx, attempt.number)
    if _is_quick(ctx):
        yield from _calibrated(ctx, attempt.number)


def _is_quick(ctx: Context) -> bool:
    return (ctx.history.incumbent_us or QUICK_US) < QUICK_US


def _calibrated(ctx: Context, number: int) -> Generator[ev.Event, None, float | None]:
    """Measure the pair noise on a quick incumbent; return its time, None where it could not be run."""
    # Another kernel has another noise, by its length alone.
    before = ctx.history.pair_noise if ctx.history.noise_of == number else None
    built = compare.subject(ctx, number)
    try:
        found = noise.calibrate(compare.taker(ctx, built, built, number))
    except Ended as ended:
        yield ev.Noticed(level="warning", text=f"no pair noise of #{number}: {ended.outcome.reason}")
        return None
    ctx.guard.calibrated(before, found.pair_noise)
    yield from ctx.guard.events(number, number)
    yield ev.NoiseCalibrated(pair_noise=found.pair_noise, pairs=found.pairs, against=number)
    return found.avg_us


def _after_gap(ctx: Context) -> Events:
    """After time that the run did not have nothing that was normal counts: time the best before it is compared."""
    if not ctx.history.retime_due:
        return
    ctx.guard.forget()
    holder = ctx.holder
    avg_us: float | None
    if _is_quick(ctx):
        avg_us = yield from _calibrated(ctx, holder)
    else:
        built = compare.subject(ctx, holder)
        try:
            avg_us = measure.coarse(compare.taker(ctx, built, built, holder), baseline=True).avg_us
        except Ended as ended:
            yield ev.Noticed(level="warning", text=f"#{holder} could not be timed again: {ended.outcome.reason}")
            avg_us = None
        yield from ctx.guard.events(holder, holder)
    if avg_us is not None:
        yield ev.IncumbentTimed(candidate=holder, avg_us=avg_us)


def _play_off(ctx: Context) -> Events:
    """Before DONE: the next four by standing, each against the holder as it then is, on fresh buffers and seeds."""
    history = ctx.history
    if history.incumbent in (None, 0):
        return
    if not history.playing_off:
        yield ev.PlayOffBegan(candidates=tuple(row.number for row in compare.finalists(history)))
    for number in history.playing_off:
        yield from _after_gap(ctx)
        against = ctx.holder
        try:
            result, seconds = _match(ctx, number, compare.subject(ctx, number), None)
        except Ended as ended:
            yield ev.PlayedOff(candidate=number, against=against, seconds=0.0, ended=ended.outcome)
            continue
        yield from ctx.guard.events(number, against)
        yield ev.PlayedOff(candidate=number, against=against, seconds=seconds, result=result)
        if history.incumbent == number:
            keep.best(ctx, number)
