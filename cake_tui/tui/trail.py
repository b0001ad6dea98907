"""What a viewer remembers of the journal beyond the shared fold: guards, gates, drift, notices, current steps."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any

import msgspec

from cake_tui.model import event as ev
from cake_tui.model.history import History
from cake_tui.store.line import decided, line_of

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
    """What the gate found last, in a word and as fractions."""

    candidate: int
    decision: str
    gain: float
    half_width: float
    series: int


class Trail(msgspec.Struct):
    """Folded beside `History` from the same events."""

    guards: dict[str, Guarded] = {}
    last_gate: Gated | None = None
    drift: list[float] = []  # ln of the incumbent's refreshed time over its first, newest last
    noises: list[float] = []
    rates: list[float] = []  # the clock's rate after the series of each candidate, newest last
    step_s: dict[str, float] = {}  # how long each step took the last time
    crowned_us: float | None = None
    timed_beside: int | None = None  # the candidate in whose pairs the best was timed last, None: when it was accepted
    warned: list[str] = []  # what the engine had to say at the start, before its first round
    menu_refused: str = ""  # why the last edit of actions.toml was refused, until one is taken
    refusals: dict[str, str] = {}  # request id -> reason, the latest ones

    def apply(self, event: ev.Event, history: History) -> None:
        """Fold one event; `history` has folded it already."""
        step = _STEPS.get(type(event))
        if step is not None:
            self.step_s = {**self.step_s, step: getattr(event, "seconds", 0.0)}
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event, history)

    def _drifted(self, time_us: float) -> None:
        if self.crowned_us and time_us > 0:
            self.drift = [*self.drift[1 - KEPT :], math.log(time_us / self.crowned_us)]


def _guarded(trail: Trail, event: ev.GuardFired, history: History) -> None:
    stale = event.stale
    seen = trail.guards.get(stale.code)
    times = (seen.times if seen else 0) + 1
    trail.guards[stale.code] = Guarded(stale.code, times, stale.saw, stale.reaction, event.t, event.candidate)


def _gated(trail: Trail, event: ev.GateEnded | ev.PlayedOff, history: History) -> None:
    result = event.result
    if result is None:
        return
    half = abs(result.gain - result.gain_low)
    trail.last_gate = Gated(event.candidate, decided(result), result.gain, half, result.series)
    if event.against == history.incumbent:
        trail._drifted(result.holder_us)
        trail.timed_beside = event.candidate
    elif event.candidate == history.incumbent:
        _crowned(trail, event, history)


def _crowned(trail: Trail, event: ev.Event, history: History) -> None:
    trail.crowned_us, trail.drift, trail.timed_beside = history.incumbent_us, [], None


def _candidate_ended(trail: Trail, event: ev.CandidateEnded, history: History) -> None:
    if history.incumbent == event.candidate:
        _crowned(trail, event, history)


def _timed(trail: Trail, event: ev.IncumbentTimed, history: History) -> None:
    trail._drifted(event.avg_us)
    if history.incumbent == event.candidate:
        trail.timed_beside = event.candidate  # by itself


def _noticed(trail: Trail, event: ev.Noticed, history: History) -> None:
    if event.level != "info" and not history.round and len(trail.warned) < KEPT:
        trail.warned.append(event.text)


def _measured(trail: Trail, event: ev.Coarse, history: History) -> None:
    rates = [one.after.rate for one in event.series if one.after is not None and one.after.rate is not None]
    if rates:
        trail.rates = [*trail.rates[1 - KEPT :], statistics.median(rates)]


def _calibrated(trail: Trail, event: ev.NoiseCalibrated, history: History) -> None:
    trail.noises = [*trail.noises[1 - KEPT :], event.pair_noise]


def _refused(trail: Trail, event: ev.RequestRefused, history: History) -> None:
    trail.refusals[event.id] = event.reason
    if len(trail.refusals) > KEPT:
        del trail.refusals[next(iter(trail.refusals))]


def _menu_changed(trail: Trail, event: ev.MenuChanged, history: History) -> None:
    trail.menu_refused = line_of(event, history) if event.refused else ""


_HANDLERS: dict[type[ev.Event], Callable[[Trail, Any, History], None]] = {
    ev.Noticed: _noticed,
    ev.GuardFired: _guarded,
    ev.GateEnded: _gated,
    ev.PlayedOff: _gated,
    ev.CandidateEnded: _candidate_ended,
    ev.IncumbentTimed: _timed,
    ev.NoiseCalibrated: _calibrated,
    ev.Coarse: _measured,
    ev.RequestRefused: _refused,
    ev.MenuChanged: _menu_changed,
}

_STEPS: dict[type[ev.Event], str] = {
    ev.BuildEnded: "build",
    ev.CheckEnded: "check",
    ev.Coarse: "measure",
    ev.GateEnded: "gate",
}
