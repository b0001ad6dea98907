"""Two kernels side by side: series from the evaluator, the peers beside the best, and the last matches."""

from __future__ import annotations

import random
from collections.abc import Generator

from cake_tui.errors import ENVIRONMENT, UserError
from cake_tui.model import event as ev
from cake_tui.model.history import History
from cake_tui.model.jobs import EvaluatorReply, Lost, Refused, Timed, TimePairs, TimePeer
from cake_tui.model.measure import Series
from cake_tui.model.row import Row
from cake_tui.steps import noise, propose
from cake_tui.steps.build import Binaries, build_one
from cake_tui.steps.check import answered
from cake_tui.steps.context import Context
from cake_tui.steps.measure import Ask, Take

PLAY_OFF = 4
HOLDER_TRIES = 3  # fresh evaluators in which a known-good kernel may fail before the machine is to blame
JOB_LIMIT_S = 300.0  # outer limit of one series; each run has its own, much shorter one

Events = Generator[ev.Event, None, None]


def subject(ctx: Context, number: int) -> Binaries:
    """Return a measured candidate's binaries, built again from its schedule where this engine has not yet."""
    if number not in ctx.subjects:
        row = ctx.history.rows[number]
        if row.schedule is None:
            raise ValueError(f"candidate {number} has no schedule")
        paper = propose.on_paper(ctx, row.proposal, row.schedule, row.level)
        ctx.subjects[number] = build_one(paper, ctx.smoke, ctx.executor, ctx.settings.building.compile_s, ctx.wait)
    return ctx.subjects[number]


def taker(ctx: Context, holder: Binaries, candidate: Binaries, number: int) -> Take:
    """Return what answers every ask with a series on fresh buffers; it raises Ended with the candidate's ending."""
    history, sample_ms = ctx.history, ctx.settings.gating.sample_ms
    rng = random.Random(f"{history.problem.seed}/{history.seq}/{number}")

    def take(ask: Ask) -> Series:
        noise.rest(ask.pause_s, ctx.wait)
        ctx.guard.refusals = ctx.settings.running.guard_refusals  # people change it while a guard refuses
        seed = rng.getrandbits(31)
        job = TimePairs(history.problem, holder.full, candidate.full, ask.pairs, seed, sample_ms, ctx.run_limit_s)
        for _ in range(HOLDER_TRIES):
            reply = ctx.executor.evaluate(job, JOB_LIMIT_S, ctx.wait)
            if not _holder_failed(reply):
                break
        else:
            reason = f"the best so far, which passed every check, fails now: {reason_of(reply)}"
            raise UserError(f"{reason}; the machine has changed: see cake-tui doctor", ENVIRONMENT)
        return answered(reply, Timed, "measure").series

    # Nothing is compared with a baseline that is being timed for the first time: it need not wait for a calm machine.
    return take if number == 0 else ctx.guard.watched(take, ctx.wait)


def _holder_failed(reply: EvaluatorReply) -> bool:
    """The arm that failed was not the candidate's: nothing to charge it with."""
    return isinstance(reply, Refused | Lost) and reply.arm == "holder"


def peers(ctx: Context, pairs: int) -> Events:
    """Time every peer of the problem side by side with the best.

    One that cannot run is noticed once, and not tried again by this engine: a resume does.
    """
    history = ctx.history
    best = history.incumbent
    if best is None:
        return
    for name in (name for name in history.problem.peers if name not in ctx.unfit):
        holder = subject(ctx, best).full
        job = TimePeer(history.problem, name, holder, pairs, history.problem.seed, ctx.settings.gating.sample_ms)
        reply = ctx.executor.evaluate(job, JOB_LIMIT_S, ctx.wait)
        if not isinstance(reply, Timed):
            text = f"peer {name} could not be timed: {reason_of(reply)}"
            if not _holder_failed(reply):
                ctx.unfit.add(name)
                text += "; it is tried again after a stop and a resume"
            yield ev.Noticed(level="warning", text=text)
            continue
        # Other programs slow a library's threads down more than ours, and nothing makes either faster: the fastest
        # sample of each is what it can do.
        peer_us = min(pair.candidate_us for pair in reply.series.pairs)
        best_us = min(pair.holder_us for pair in reply.series.pairs)
        yield ev.PeerTimed(
            peer=name, avg_us=peer_us, ratio=peer_us / best_us, against=best,
            threads=reply.peer_threads, version=reply.peer_version,
        )  # fmt: skip


def reason_of(reply: object) -> str:
    """Return a reply's own words."""
    outcome = getattr(reply, "outcome", reply)
    return str(getattr(outcome, "reason", type(outcome).__name__))


def finalists(history: History) -> list[Row]:
    """The next four by standing, undecided and never gated ones included; none that is built like the holder."""
    holder = history.incumbent
    rows = [row for row in history.measured() if row.number not in (holder, 0) and row.outcome == "Measured"]
    return sorted(rows, key=lambda row: (-(row.standing or 0.0), row.number))[:PLAY_OFF]
