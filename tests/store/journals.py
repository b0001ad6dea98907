"""Synthetic sessions for tests: a small problem, and journals of any length that look like real ones."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from pathlib import Path

import msgspec

from cake_tui.config import Settings
from cake_tui.model import event as ev
from cake_tui.model.device import Device
from cake_tui.model.facts import Agreement, Profile, StaticFacts
from cake_tui.model.finding import Finding
from cake_tui.model.measure import Clock, GateResult, Pair, Series
from cake_tui.model.move import Move, Proposal
from cake_tui.model.outcome import BuildFailed, Measured, Rejected, Repeated, Screened, WrongAnswer
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Schedule
from tests.matmul import MATMUL

BOOT = "11111111-2222-3333-4444-555555555555"


def problem(seed: int = 0) -> Problem:
    return msgspec.structs.replace(MATMUL, seed=seed)


def device(uuid: str = "simulated:ridge") -> Device:
    return Device(kind="simulated", target="c", name="a simulated device", uuid=uuid, arch="x86-64-v4", cores=2)


def created(name: str = "a", **settings: object) -> ev.SessionCreated:
    flat = Settings().changed(**settings).flat()
    return ev.SessionCreated(
        name=name,
        problem=problem(),
        device=device(),
        backend="simulated",
        agent="bandit",
        settings=flat,
        versions={"cake_tui": "0"},
    )


def schedule(rng: random.Random) -> Schedule:
    knobs = {
        "block_k": rng.choice((64, 128, 256)),
        "thread_m": rng.choice((4, 6, 8, 12)),
        "thread_n": rng.choice((1, 2, 3, 4)),
        "threads_x": rng.choice((1, 2, 4)),
        "threads_y": rng.choice((1, 2, 4, 8)),
        "unroll": rng.choice((1, 2, 4, 8)),
    }
    return Schedule.of(rng.choice(("tiled", "packed", "split_k")), knobs)


def move(rng: random.Random) -> Move:
    return rng.choice(
        (
            Move("apply_register_block", (("m", rng.choice((4, 6, 8))), ("n", rng.choice((1, 2, 3))))),
            Move("apply_unroll", (("factor", rng.choice((1, 2, 4, 8))),)),
            Move("change_block_config", (("x", rng.choice((1, 2, 4))), ("y", rng.choice((1, 2, 4))))),
        )
    )


def series(rng: random.Random, pairs: int) -> Series:
    times = [(rng.gauss(150, 3), rng.gauss(152, 3), bool(number % 2)) for number in range(pairs)]
    clock = Clock(mono=1.0, rate=2.5, load=0.0, steal_pct=0.0, sm_mhz=2500.0)
    return Series(tuple(Pair(*one) for one in times), clock, clock)


def unstamped(candidates: int, seed: int = 0) -> Iterator[ev.Event]:
    """Events of a run: half of the candidates are screened, as with twice as many proposals as slots."""
    rng = random.Random(seed)
    yield created()
    yield ev.EngineStarted(pid=1, host="here")
    yield ev.SelfTestEnded(cases=(("zeros", 9.0, "refused", "refused"),))
    number, round_number = 0, 0
    while number < candidates:
        round_number += number > 0
        if number:
            yield ev.RoundBegan(round=round_number, size=4, incumbent=0)
        for slot in range(8 if number else 1):
            if number >= candidates:
                break
            yield from candidate(rng, number, round_number, screened=slot >= 4)
            number += 1
        if round_number:
            yield ev.RoundEnded(round=round_number, accepted=0, summary={"trends": []})


def candidate(rng: random.Random, number: int, round_number: int, *, screened: bool) -> Iterator[ev.Event]:
    chosen = schedule(rng)
    reason = f"weight {rng.random():.1f}, {number} wins of {number + 2}"
    proposal = Proposal(max(0, number - rng.randrange(1, 9)) if number else 0, (move(rng),), reason, "weight", "bandit")
    sha = hashlib.sha256(f"{number}".encode()).hexdigest()
    predicted = rng.uniform(100, 200)
    if screened:
        outcome = rng.choice(
            (
                Screened(step="cost", reason=f"predicted {predicted:.4g} us", predicted_us=predicted),
                Screened(step="cost", reason=f"predicted {predicted:.4g} us", predicted_us=predicted),
                Rejected(step="laws", reason="shared memory: 300000, needed: at most 232448"),
                Repeated(step="lower", reason="same source as candidate 3: Measured slower", of=3),
            )
        )
        yield ev.CandidateEnded(
            candidate=number, round=round_number, outcome=outcome, proposal=proposal, level="micro", schedule=chosen,
            predicted_us=predicted, source_sha256=sha,
        )  # fmt: skip
        return
    yield ev.Planned(
        candidate=number, round=round_number, proposal=proposal, level="micro", schedule=chosen, predicted_us=predicted,
        source_sha256=sha,
    )  # fmt: skip
    if number and rng.random() < 0.03:
        failed = BuildFailed(
            step="build", reason="error: [/BM] expected", log="[/dim] a[i][/*pad*/]", log_bytes=200_000
        )
        yield ev.CandidateEnded(candidate=number, round=round_number, outcome=failed)
        return
    facts = StaticFacts(compiler="cc 12", code_bytes=9000, vector_share=0.9, missed_loops=("k.c:1: no",))
    yield ev.BuildEnded(candidate=number, seconds=0.4, full_sha256=sha, smoke_sha256=sha, facts=facts)
    if number and rng.random() < 0.03:
        wrong = WrongAnswer(step="check", reason="bound", failure="bound", bad_elements=7, elements=512, found="nan")
        yield ev.CandidateEnded(candidate=number, round=round_number, outcome=wrong)
        return
    agreement = Agreement(1e-6, 1e-6, 20.0, 0.1, ("default", "positive"), ("M=64,N=64,K=64",))
    yield ev.CheckEnded(candidate=number, seconds=0.2, agreement=agreement)
    against = 0 if number else None
    looks = tuple(series(rng, 1) for _ in range(3))
    avg_us = 150.0 * (1 - 1e-5 * number)
    yield ev.Coarse(
        candidate=number, against=against, seconds=0.1, avg_us=avg_us, runs_us=(150.1, 150.2, 150.3), gain=-0.01,
        series=looks,
    )  # fmt: skip
    verdict = None if number == 0 else "slower"
    if number and rng.random() < 0.5:
        accepted = rng.random() < 0.05
        verdict = "accepted" if accepted else "undecided"
        result = GateResult(
            "accept" if accepted else "undecided", 0.01, 0.006, 3, 12, accepted, "three looks", avg_us, 150.0
        )
        yield ev.GateEnded(candidate=number, against=0, seconds=1.0, result=result)
    finding = Finding("memory_bound", "memory bound", "structural", 0.7, (("share", 0.46),), "more loads", ("unroll",))
    yield ev.CandidateEnded(
        candidate=number, round=round_number, outcome=Measured(step="gate", verdict=verdict, avg_us=avg_us),
        findings=(finding,), profile=Profile("static+model", vector_share=0.9, bytes_moved=1e6),
    )  # fmt: skip


def stamped(events: Iterator[ev.Event], step_s: float = 1.0) -> Iterator[ev.Event]:
    for seq, event in enumerate(events, 1):
        yield msgspec.structs.replace(
            event, v=ev.VERSION, seq=seq, t="2026-11-29T23:07:30.123Z", mono=100.0 + step_s * seq, boot=BOOT
        )


def write(path: Path, candidates: int, seed: int = 0) -> int:
    """Write a journal; returns how many events it has."""
    encoder = msgspec.json.Encoder()
    count = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for event in stamped(unstamped(candidates, seed)):
            file.write(encoder.encode(event) + b"\n")
            count += 1
    return count
