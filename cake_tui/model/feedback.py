"""The structured feedback of one candidate, as `feedback.json` holds it; unknown is null, never a guess."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from cake_tui.model.facts import Profile


class Correctness(msgspec.Struct, frozen=True):
    """Errors against the float64 reference; None before the check ran. `notes`: worth knowing, no reason to refuse."""

    max_abs_err: float | None
    rel_err: float | None
    passed: bool | None
    worst_unit: float | None = None
    failure: str | None = None
    notes: tuple[str, ...] = ()


class Perf(msgspec.Struct, frozen=True):
    """Times in microseconds; `avg_us` is the median of the three coarse runs in `runs_us`."""

    avg_us: float
    throughput_tflops: float | None
    runs_us: tuple[float, ...]
    gain_pct: float | None = None
    gain_low_pct: float | None = None
    series: int = 0
    pair_noise_pct: float | None = None
    decision: str | None = None


class Failure(msgspec.Struct, frozen=True):
    """The limit that forbids it, as numbers."""

    reason: str
    limit: str | None = None
    asked: float | None = None
    available: float | None = None
    unit: str | None = None


class BestSoFar(msgspec.Struct, frozen=True):
    """The incumbent when this was written."""

    rank_est: int | None
    avg_us: float | None
    candidate: int | None = None


class Advice(msgspec.Struct, frozen=True):
    """A finding as the feedback shows it."""

    label: str
    kind: str
    confidence: float
    evidence: dict[str, float | str | None]
    advice: str
    actions: tuple[str, ...]


class Feedback(msgspec.Struct, frozen=True):
    """One candidate's feedback."""

    iteration: int
    action_taken: str
    compile_status: Literal["ok", "no", "timeout", "skipped"]
    outcome: str
    verdict: str | None
    correctness: Correctness
    perf: Perf | None
    profile: Profile | None
    failure: Failure | None
    best_so_far: BestSoFar
    findings: tuple[Advice, ...]
    round: dict[str, Any]
    clock: dict[str, Any] | None = None
