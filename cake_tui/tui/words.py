"""Which events the log pane shows, and each one's tone; what an event says is `store.line`'s, as in ``tail``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cake_tui.model import event as ev
from cake_tui.model.history import History
from cake_tui.model.outcome import kind_of
from cake_tui.store.line import line_of
from cake_tui.tui import format as fmt

# Groups that the log can be narrowed to; kinds of newer versions are in none of them.
GROUPS: dict[str, frozenset[str]] = {
    "decisions": frozenset({"CandidateEnded", "GateEnded", "BaseReverted", "PlayOffBegan", "PlayedOff", "EngineEnded"}),
    "people": frozenset({
        "RequestTaken", "RequestRefused", "RequestUndone", "MenuChanged", "SettingsChanged", "BaseReverted",
    }),
    "trouble": frozenset({
        "Noticed", "GuardFired", "PausedByGuard", "EvaluatorReplaced", "GapSeen", "Stalled", "StepLost",
        "RequestRefused", "ProposalDropped", "EngineEnded", "Sanitized",
    }),
}  # fmt: skip
# What nobody reads one by one; shown only by "everything".
QUIET = frozenset({"Planned", "BuildEnded", "CheckEnded", "Coarse", "RoundBegan", "IncumbentTimed"})


def toned(event: ev.Event, history: History) -> tuple[str, str]:
    """Return (tone, text on one line) of an event that `history` has folded."""
    tone, text = told(event, history)
    return tone, fmt.visible(text)


def told(event: ev.Event, history: History) -> tuple[str, str]:
    """Return (tone, text as it came) of an event; what ended or who acted begins with a glyph."""
    text = line_of(event, history)
    if isinstance(event, ev.CandidateEnded):
        glyph, _, tone = fmt.outcome_mark(_ended_as(event, history))
        return tone, f"{glyph} {text}"
    if type(event).__name__ in GROUPS["people"]:
        text = f"▲ {text}"
    tone_of = _TONES.get(type(event), "")
    return (tone_of if isinstance(tone_of, str) else tone_of(event)), text


def _ended_as(event: ev.CandidateEnded, history: History) -> str:
    known = 0 <= event.candidate < len(history.rows)
    return history.rows[event.candidate].ended_as if known else kind_of(event.outcome)


def _decided(event: ev.GateEnded | ev.PlayedOff) -> str:
    if event.result is None:
        return "warn"
    return "good" if event.result.decision == "accept" else "dim"


_TONES: dict[type[ev.Event], str | Callable[[Any], str]] = {
    ev.SessionCreated: "strong",
    ev.EngineStarted: "dim",
    ev.EngineEnded: lambda e: {"done": "goodword", "stopped": "warn", "failed": "badword"}[e.state],
    ev.GapSeen: "warn",
    ev.Noticed: lambda e: {"info": "", "warning": "warn", "error": "bad"}[e.level],
    ev.Probed: "dim",
    ev.SelfTestEnded: "dim",
    ev.RequestTaken: "accent",
    ev.RequestRefused: "warn",
    ev.RequestUndone: "accent",
    ev.MenuChanged: lambda e: "bad" if e.refused else "accent",
    ev.SettingsChanged: "accent",
    ev.PausedByGuard: "warnword",
    ev.RoundBegan: "dim",
    ev.BaseReverted: "accent",
    ev.Planned: "dim",
    ev.BuildEnded: "dim",
    ev.CheckEnded: "dim",
    ev.GateEnded: _decided,
    ev.StepLost: "warn",
    ev.RoundEnded: lambda e: "strong" if e.accepted else "dim",
    ev.Stalled: "warn",
    ev.IncumbentTimed: "dim",
    ev.GuardFired: "warn",
    ev.EvaluatorReplaced: "warn",
    ev.PlayOffBegan: "strong",
    ev.PlayedOff: _decided,
    ev.Profiled: lambda e: "warn" if e.refused else "dim",
    ev.Sanitized: lambda e: "bad" if e.errors else "warn" if e.refused else "dim",
    ev.ProposalDropped: "warn",
}
