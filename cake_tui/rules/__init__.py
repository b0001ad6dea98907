"""Rules turn what was measured into findings. One file a rule; its docstring says Signal, Why it matters, Try."""

from __future__ import annotations

from typing import Protocol

import msgspec

from cake_tui.model.device import Device
from cake_tui.model.facts import Agreement, Profile, StaticFacts
from cake_tui.model.finding import Finding
from cake_tui.model.measure import GateResult
from cake_tui.model.outcome import Outcome
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Schedule


class Evidence(msgspec.Struct, frozen=True):
    """All that a rule may look at; None is unknown. `terms` are the cost model's named terms (us, bytes...)."""

    problem: Problem
    device: Device
    schedule: Schedule | None
    outcome: Outcome
    time_us: float | None = None
    facts: StaticFacts | None = None
    agreement: Agreement | None = None
    profile: Profile | None = None
    gate: GateResult | None = None
    pair_noise: float | None = None
    terms: dict[str, float] = {}
    # rule -> how often its advice was followed on this kernel without a win
    failed_advice: dict[str, int] = {}


class Rule(Protocol):
    """What `PLUGIN` is."""

    def __call__(self, evidence: Evidence) -> Finding | None:
        """Return a finding, or None where the signal is not there."""
