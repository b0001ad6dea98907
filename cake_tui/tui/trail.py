"""What a viewer remembers of the journal beyond the shared fold: guards, gates, drift, notices, current steps."""

from __future__ import annotations

import math

import msgspec

from cake_tui.model import event as ev
from cake_tui.model.history import History

KEPT = 48


class Guarded(msgspec.Struct):
    """A stale-clock code: how often it fired, and the last time in full."""

    code: str
    times: int
    saw: str
    reaction: str
    t: str
    candidate: int | None


class Gated(msgspec.Struct, frozen=True):
    """The last decision of the gate, as fractions."""

    candidate: int
    decision: str
    gain: float
    half_width: float
    series: int


class Trail(msgspec.Struct):
    """Folded beside `History` from the same events."""

    events: int = 0
    guards: dict[str, Guarded] = {}
    last_gate: Gated | None = None
    drift: list[float] = []  # ln of the incumbent's refreshed time over its first, newest last
    noises: list[float] = []
    crowned_us: float | None = None
    notice: tuple[str, str, str] | None = None  # level, text, t
    replaced: int = 0
    compiler: str = ""
    last_mono: float = 0.0
    last_boot: str = ""
    refusals: dict[str, str] = {}  # request id -> reason, the latest ones

    def apply(self, event: ev.Event, history: History) -> None:
        """Fold one event; `history` has folded it already."""
        self.events += 1
        self.last_mono, self.last_boot = event.mono, event.boot
        match event:
            case ev.GuardFired():
                seen = self.guards.get(event.stale.code)
                self.guards[event.stale.code] = Guarded(
                    event.stale.code,
                    (seen.times if seen else 0) + 1,
                    event.stale.saw,
                    event.stale.reaction,
                    event.t,
                    event.candidate,
                )
            case ev.GateEnded():
                result = event.result
                half = abs(result.gain - result.gain_low)
                self.last_gate = Gated(event.candidate, result.decision, result.gain, half, result.series)
                if event.against == history.incumbent:
                    self._drifted(result.holder_us)
            case ev.IncumbentTimed():
                self._drifted(event.avg_us)
            case ev.CandidateEnded():
                if history.incumbent == event.candidate:
                    self.crowned_us, self.drift = history.incumbent_us, []
            case ev.NoiseCalibrated():
                self.noises = [*self.noises[1 - KEPT :], event.pair_noise]
            case ev.Noticed():
                self.notice = (event.level, event.text, event.t)
            case ev.RequestRefused():
                self.refusals[event.id] = event.reason
                if len(self.refusals) > KEPT:
                    del self.refusals[next(iter(self.refusals))]
            case ev.EvaluatorReplaced():
                self.replaced += 1
            case ev.Probed():
                self.compiler = f"{event.compiler} {event.version}".strip()
            case _:
                pass

    def _drifted(self, time_us: float) -> None:
        if self.crowned_us and time_us > 0:
            self.drift = [*self.drift[1 - KEPT :], math.log(time_us / self.crowned_us)]
