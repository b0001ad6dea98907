"""One line an event, for logs, ``tail`` and headless progress; outside text is shown literally."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cake_tui.model import event as ev
from cake_tui.model.history import History
from cake_tui.model.outcome import Measured, kind_of

_LONGEST = 400


def visible(text: str, longest: int = _LONGEST) -> str:
    """Return `text` on one line with control characters made visible; longer text ends in an ellipsis."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[: longest + 1])
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def seconds_text(seconds: float) -> str:
    """``0.4 s``, ``12 s``, ``3 min 20 s``, ``2 h 5 min``; the sign is kept."""
    sign, left = ("-", -seconds) if seconds < 0 else ("", seconds)
    if left < 10:
        return f"{sign}{left:.1f} s"
    whole = round(left)
    if whole < 60:
        return f"{sign}{whole} s"
    if whole < 3600:
        return f"{sign}{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    return f"{sign}{whole // 3600} h" + (f" {whole % 3600 // 60} min" if whole % 3600 // 60 else "")


def time_text(time_us: float | None) -> str:
    """``152.4 us``, ``3.21 ms``, ``1.05 s``, ``n/a``."""
    if time_us is None:
        return "n/a"
    for unit, scale in (("s", 1e6), ("ms", 1e3)):
        if time_us >= scale:
            return f"{time_us / scale:.4g} {unit}"
    return f"{time_us:.4g} us"


def line_of(event: ev.Event, history: History) -> str | None:
    """Return what a person should read about an event just folded into `history`; None for what says little."""
    make = _LINES.get(type(event))
    text = make(event, history) if make is not None else None
    return visible(text) if text is not None else None


def _created(e: ev.SessionCreated, h: History) -> str:
    shapes = " · ".join(shape.text for shape in e.problem.shapes)
    return f'session "{e.name}": {e.problem.kernel} {shapes} on {e.device.name} ({e.backend}), agent {e.agent}'


def _started(e: ev.EngineStarted, h: History) -> str:
    changes = "; ".join(f"{name}: {old} → {new}" for name, old, new in e.changes)
    return f"engine started, PID {e.pid} on {e.host}" + (f"; changed: {changes}" if changes else "")


def _ended_engine(e: ev.EngineEnded, h: History) -> str:
    best = f"; best: candidate {h.incumbent}, {time_text(h.incumbent_us)}" if h.incumbent is not None else ""
    return f"{e.state.upper()}: {e.reason}{best}"


_GAPS = {
    "wall": "the wall clock was stepped", "stopped": "the engine was stopped", "offline": "no engine ran",
    "no space": "the disk was full",
}  # fmt: skip


def _gap(e: ev.GapSeen, h: History) -> str:
    return f"gap of {seconds_text(e.seconds)}: {_GAPS[e.what]}; it does not count against the budget"


def _candidate(e: ev.CandidateEnded, h: History) -> str:
    outcome = e.outcome
    row = h.rows[e.candidate] if e.candidate < len(h.rows) else None
    moves = row.proposal.text if row is not None else ""
    if isinstance(outcome, Measured):
        said = outcome.verdict if e.candidate else "baseline"
        time_us = row.time_us if row is not None and row.time_us is not None else outcome.avg_us
        gain = f" ({100 * row.gain:+.2f} %)" if row is not None and row.gain is not None and e.candidate else ""
        return f"#{e.candidate} {said} {time_text(time_us)}{gain}  {moves}"
    reason = f": {outcome.reason}" if outcome.reason else ""
    return f"#{e.candidate} {kind_of(outcome)}{reason}  {moves}"


def _taken(e: ev.RequestTaken, h: History) -> str:
    detail = e.body.get("text") or e.body.get("note") or " ".join(map(str, _listed(e.body.get("actions"))))
    return f"{e.what} by {e.who}" + (f": {detail}" if detail else "")


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _round(e: ev.RoundEnded, h: History) -> str:
    best = f"best {time_text(h.incumbent_us)} (#{h.incumbent})" if h.incumbent is not None else "no best yet"
    return f"round {e.round}: {e.accepted} accepted; {best}; {h.effective} effective candidates"


def _replaced(e: ev.EvaluatorReplaced, h: History) -> str:
    took = f" in {seconds_text(e.seconds)}" if e.seconds is not None else ""
    return f"evaluator replaced{took}: {e.reason}"


def _played_off(e: ev.PlayedOff, h: History) -> str:
    ended = kind_of(e.ended) if e.ended is not None else "not decided"
    said = e.result.decision if e.result is not None else ended
    return f"play-off: #{e.candidate} against #{e.against}: {said}"


_LINES: dict[type[ev.Event], Callable[[Any, History], str | None]] = {
    ev.SessionCreated: _created,
    ev.EngineStarted: _started,
    ev.EngineEnded: _ended_engine,
    ev.GapSeen: _gap,
    ev.Noticed: lambda e, h: f"{e.level}: {e.text}",
    ev.Probed: lambda e, h: f"compiler: {e.version}",
    ev.SelfTestEnded: lambda e, h: f"self-test of the check: {len(e.cases)} cases as expected",
    ev.RequestTaken: _taken,
    ev.RequestRefused: lambda e, h: f"refused {e.what} by {e.who}: {e.reason}",
    ev.RequestUndone: lambda e, h: f"undo by {e.who}: {e.undoes}",
    ev.MenuChanged: lambda e, h: f"actions: {e.refused or '; '.join(e.changes)}",
    ev.PausedByGuard: lambda e, h: f"PAUSED: {e.guard}: {e.reason}",
    ev.BaseReverted: lambda e, h: f"revert by {e.who}: the next round starts from candidate {e.base}",
    ev.CandidateEnded: _candidate,
    ev.StepLost: lambda e, h: f"#{e.candidate} goes on: the step after {e.step} was lost",
    ev.RoundEnded: _round,
    ev.Stalled: lambda e, h: f"STALLED {e.rounds} rounds without a win",
    ev.NoiseCalibrated: lambda e, h: f"pair noise {100 * e.pair_noise:.2f} % ({e.pairs} pairs of #{e.against})",
    ev.PeerTimed: lambda e, h: (
        f"peer {e.peer}: {time_text(e.avg_us)}; the best (#{e.against}) is {e.ratio:.3f} × as fast"
    ),
    ev.GuardFired: lambda e, h: f"{e.stale.code}: {e.stale.saw}; {e.stale.reaction}",
    ev.EvaluatorReplaced: _replaced,
    ev.PlayOffBegan: lambda e, h: f"play-off: {', '.join(f'#{number}' for number in e.candidates)} against the best",
    ev.PlayedOff: _played_off,
    ev.ProposalDropped: lambda e, h: f"dropped {e.proposal.text}: {e.reason}",
}
