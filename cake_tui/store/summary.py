"""The summary of a session: what ``status`` and ``show`` print and the head of every snapshot."""

from __future__ import annotations

from typing import Any

import msgspec

from cake_tui.model.history import History
from cake_tui.model.problem import Problem


class Candidates(msgspec.Struct, frozen=True):
    """How many candidates ended how; `effective` ones count against the budget."""

    total: int
    effective: int
    repeated: int
    rejected: int
    screened: int
    failed: int
    measured: int
    accepted: int
    interrupted: int
    budget: int


class Best(msgspec.Struct, frozen=True):
    """The incumbent; `found_at_s` is the session's running time when it was accepted."""

    candidate: int
    time_us: float | None
    throughput_tflops: float | None
    lineage: tuple[int, ...]
    source_sha256: str | None
    schedule: str
    found_at_s: float
    sanitized: str | None = None  # memory and race checkers: clean, errors, doubtful, refused; None: not asked


class Speedup(msgspec.Struct, frozen=True):
    """Times over the best's: above 1 the best is faster. A peer's ratio is from side-by-side timing."""

    baseline: float | None
    peer: dict[str, float]


class Noise(msgspec.Struct, frozen=True):
    """Pair noise of the session."""

    pair_pct: float | None


class Summary(msgspec.Struct, frozen=True):
    """A session at a glance; unknown is null."""

    name: str
    state: str
    reason: str
    kernel: str
    problem: dict[str, Any]
    device: dict[str, Any]
    backend: str
    agent: str
    candidates: Candidates
    elapsed_s: float
    hours: float
    round: int
    best: Best | None
    speedup: Speedup
    noise: Noise
    stalled_rounds: int
    queued: int
    seq: int
    updated: str
    goal: str | None = None


def summarise(history: History) -> Summary:
    """Fold a history into its summary; raises ValueError before the session's first event."""
    session = history.session
    if session is None:
        raise ValueError("the journal has no SessionCreated event")
    problem, device, counts = session.problem, session.device, history.counts
    return Summary(
        name=session.name,
        state=history.state,
        reason=history.state_reason,
        kernel=problem.kernel,
        problem={
            "shapes": [dict(shape.sizes) for shape in problem.shapes],
            "ranking": problem.ranking,
            "cache": problem.cache,
            "precision": problem.precision,
            "tolerance_abs": problem.tolerance_abs,
            "seed": problem.seed,
        },
        device={"name": device.name, "uuid": device.uuid, "kind": device.kind, "arch": device.arch},
        backend=session.backend,
        agent=session.agent,
        candidates=Candidates(
            total=counts.get("total", 0),
            effective=counts.get("effective", 0),
            repeated=counts.get("Repeated", 0),
            rejected=counts.get("Rejected", 0),
            screened=counts.get("Screened", 0),
            failed=counts.get("failed", 0),
            measured=counts.get("Measured", 0),
            accepted=counts.get("accepted", 0),
            interrupted=counts.get("Interrupted", 0),
            budget=int(history.settings.get("candidates", 0)),
        ),
        elapsed_s=round(history.elapsed_s, 3),
        hours=float(history.settings.get("hours", 0.0)),
        round=history.round,
        best=_best(history, problem),
        speedup=_speedup(history),
        noise=Noise(None if history.pair_noise is None else 100 * history.pair_noise),
        stalled_rounds=history.rounds_without_win,
        queued=len(history.queue),
        seq=history.seq,
        updated=history.last_t,
        goal=session.goal,
    )


def _best(history: History, problem: Problem) -> Best | None:
    from cake_tui.ir.work import work  # `status` reads a summary that was made before: it need not pay for the IR

    number = history.incumbent
    if number is None or number >= len(history.rows):
        return None
    row, time_us = history.rows[number], history.incumbent_us
    found = next((win.elapsed_s for win in reversed(history.wins) if win.candidate == number), 0.0)
    return Best(
        candidate=number,
        time_us=time_us,
        throughput_tflops=work(problem).throughput_tflops(time_us),
        lineage=history.lineage(number),
        source_sha256=row.source_sha256,
        schedule=row.schedule.text if row.schedule is not None else "",
        found_at_s=round(found, 3),
        sanitized=row.sanitized,
    )


def _speedup(history: History) -> Speedup:
    return Speedup(history.speedup, {name: peer.ratio for name, peer in history.peers.items()})
