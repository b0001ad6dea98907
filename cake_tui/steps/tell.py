"""Tell: the structured feedback of one candidate, whatever its outcome; unknown is null, never a guess."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from cake_tui.ir.work import work
from cake_tui.model.facts import Profile
from cake_tui.model.feedback import Advice, BestSoFar, Correctness, Failure, Feedback, Perf
from cake_tui.model.finding import Finding
from cake_tui.model.measure import Clock
from cake_tui.model.outcome import (
    BuildFailed,
    Crashed,
    Interrupted,
    LaunchFailed,
    Measured,
    Outcome,
    Rejected,
    Repeated,
    Screened,
    TimedOut,
    WrongAnswer,
    kind_of,
)
from cake_tui.rules import Evidence

CompileStatus = Literal["ok", "no", "timeout", "skipped"]

# "uses too much shared data (0x14000 bytes, 0xc000 max)", as ptxas words it
_TOO_MUCH = re.compile(
    r"too much (?P<what>[a-z ]+?) (?:data|space)?\s*\((?P<asked>\w+) (?P<unit>\w+), (?P<most>\w+) max\)", re.IGNORECASE
)


class Told(msgspec.Struct, frozen=True):
    """What the feedback adds to a rule's evidence: who, by which moves, beside which best."""

    number: int
    action: str
    best: BestSoFar
    runs_us: tuple[float, ...] = ()
    findings: tuple[Finding, ...] = ()
    round: Mapping[str, Any] = {}
    clock: Clock | None = None
    device_ghz: float | None = None  # the device's own clock in the candidate's samples
    stale_codes: tuple[str, ...] = ()
    built: bool = False  # it has binaries, however it ended


def feedback(told: Told, evidence: Evidence) -> Feedback:
    """Return the feedback of a candidate; every number in it is finite or null."""
    outcome = evidence.outcome
    return Feedback(
        iteration=told.number,
        action_taken=told.action,
        compile_status=compile_status(outcome, built=told.built),
        outcome=kind_of(outcome),
        verdict=outcome.verdict if isinstance(outcome, Measured) else None,
        correctness=_correctness(evidence),
        perf=_perf(told, evidence),
        profile=_finite_profile(evidence.profile),
        failure=failure(outcome),
        best_so_far=msgspec.structs.replace(told.best, avg_us=_known(told.best.avg_us)),
        findings=tuple(_advice(finding) for finding in told.findings),
        round=dict(told.round),
        clock=None if told.clock is None else _clock(told, told.clock),
    )


def compile_status(outcome: Outcome, *, built: bool) -> CompileStatus:
    """Say how far the compiler came: ok, no, timeout, or skipped where it was never asked."""
    if isinstance(outcome, BuildFailed):
        return "no"
    if isinstance(outcome, TimedOut) and outcome.step == "build":
        return "timeout"
    if isinstance(outcome, Rejected | Screened | Repeated):
        return "skipped"
    if isinstance(outcome, Crashed | Interrupted) and not built:
        return "no" if isinstance(outcome, Crashed) else "skipped"
    return "ok"


def failure(outcome: Outcome) -> Failure | None:
    """Return the limit that forbids it as numbers, where there is one; None for what did not fail."""
    reason = outcome.reason or kind_of(outcome)
    if isinstance(outcome, Rejected):
        told = next((one for one in outcome.diagnostics if one.asked is not None), None)
        if told is None:
            first = outcome.diagnostics[0] if outcome.diagnostics else None
            return Failure(reason, limit=first.limit or first.field if first else None)
        return Failure(reason, told.limit or told.field, _known(told.asked), _known(told.available), told.unit)
    if isinstance(outcome, LaunchFailed):
        return Failure(reason, outcome.limit, _known(outcome.asked), _known(outcome.available), outcome.unit)
    if isinstance(outcome, BuildFailed):
        return _from_log(reason, outcome.log)
    if isinstance(outcome, TimedOut):
        return Failure(reason, limit=f"{outcome.step or 'run'} time", available=_known(outcome.limit_s), unit="s")
    if isinstance(outcome, WrongAnswer):
        return Failure(
            reason, limit=outcome.failure, asked=_known(outcome.bad_elements), available=0.0, unit="wrong elements"
        )
    if isinstance(outcome, Crashed):
        return Failure(reason, limit=outcome.signal)
    return None


def _from_log(reason: str, log: str) -> Failure:
    """Find the limit in the compiler's words, where they hold one."""
    found = _TOO_MUCH.search(log)
    if found is None:
        return Failure(reason)
    try:
        asked, most = float(int(found["asked"], 0)), float(int(found["most"], 0))
    except ValueError:
        return Failure(reason)
    return Failure(reason, found["what"].strip(), asked, most, found["unit"])


def _correctness(evidence: Evidence) -> Correctness:
    agreement, outcome = evidence.agreement, evidence.outcome
    if isinstance(outcome, WrongAnswer):
        return Correctness(
            _known(outcome.max_abs_err), None, False, _known(outcome.worst_unit), failure=outcome.failure
        )
    if agreement is None:
        return Correctness(None, None, None)
    worst = _known(agreement.worst_unit)
    return Correctness(_known(agreement.max_abs_err), _known(agreement.rel_err), True, worst, notes=agreement.notes)


def _perf(told: Told, evidence: Evidence) -> Perf | None:
    time_us = _known(evidence.time_us)
    if time_us is None:
        return None
    gate = evidence.gate
    return Perf(
        avg_us=time_us,
        throughput_tflops=_known(work(evidence.problem).throughput_tflops(time_us)),
        runs_us=tuple(run for run in told.runs_us if math.isfinite(run)),
        gain_pct=None if gate is None else gain_pct(gate.gain),
        gain_low_pct=None if gate is None else gain_pct(gate.gain_low),
        series=0 if gate is None else gate.series,
        pair_noise_pct=None if evidence.pair_noise is None else _known(100.0 * evidence.pair_noise),
        decision=None if gate is None else gate.decision,
    )


def gain_pct(gain: float) -> float | None:
    """Return how much faster a gain ln(t_holder / t_candidate) means, in percent, as lines and screens say it."""
    try:
        return _known(100.0 * math.expm1(gain))
    except OverflowError:
        return None


def _advice(finding: Finding) -> Advice:
    evidence = {name: _known(value) if isinstance(value, float) else value for name, value in finding.evidence}
    return Advice(
        finding.label, finding.kind, _known(finding.confidence) or 0.0, evidence, finding.advice, finding.actions
    )


def _clock(told: Told, clock: Clock) -> dict[str, Any]:
    """What was read of the machine, without what could not be."""
    values = msgspec.structs.asdict(clock)
    values.pop("mono")
    values.pop("read_mono")
    values |= {"device_ghz": told.device_ghz, "stale_codes": told.stale_codes}
    return {name: value for name, value in values.items() if value not in (None, (), "")}


def _finite_profile(profile: Profile | None) -> Profile | None:
    if profile is None:
        return None
    fixed = {name: _known(value) for name, value in _floats(profile)}
    return msgspec.structs.replace(profile, **fixed)


def _floats(profile: Profile) -> Sequence[tuple[str, float]]:
    return [(name, value) for name, value in msgspec.structs.asdict(profile).items() if isinstance(value, float)]


def _known(value: float | None) -> float | None:
    """Return the number, or None for what JSON has no number for."""
    return None if value is None or not math.isfinite(value) else value
