"""One line for people of each kind of event: for the log pane and the plain mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cake_tui.model import event as ev
from cake_tui.model.outcome import Measured, WrongAnswer, kind_of
from cake_tui.tui import format as fmt

# Groups that the log can be narrowed to; kinds of newer versions are in none of them.
GROUPS: dict[str, frozenset[str]] = {
    "decisions": frozenset({"CandidateEnded", "GateEnded", "BaseReverted", "PlayOffBegan", "PlayedOff", "EngineEnded"}),
    "people": frozenset({
        "RequestTaken", "RequestRefused", "RequestUndone", "MenuChanged", "SettingsChanged", "BaseReverted",
    }),
    "trouble": frozenset({
        "Noticed", "GuardFired", "PausedByGuard", "EvaluatorReplaced", "GapSeen", "Stalled", "StepLost",
        "RequestRefused", "ProposalDropped", "EngineEnded",
    }),
}  # fmt: skip
# What nobody reads one by one; shown only by "everything".
QUIET = frozenset({"Planned", "BuildEnded", "CheckEnded", "RoundBegan", "IncumbentTimed"})


def line_of(event: ev.Event) -> tuple[str, str]:
    """Return (tone, text) of an event; kinds without words of their own show their name."""
    words = _WORDS.get(type(event))
    return words(event) if words is not None else ("dim", type(event).__name__)


def _v(text: object, limit: int = 400) -> str:
    return fmt.visible(text, limit)


def _created(e: ev.SessionCreated) -> tuple[str, str]:
    shapes = "; ".join(shape.text for shape in e.problem.shapes)
    return (
        "strong",
        f"session {_v(e.name)}: {_v(e.problem.kernel)} {shapes} on {_v(e.device.name)}, agent {_v(e.agent)}",
    )


def _ended(e: ev.EngineEnded) -> tuple[str, str]:
    tone = {"done": "goodword", "stopped": "warn", "failed": "badword"}[e.state]
    return tone, f"engine ended: {e.state}: {_v(e.reason)}"


def _self_test(e: ev.SelfTestEnded) -> tuple[str, str]:
    return "dim", f"self-test of the check: {len(e.cases)} cases told right from wrong"


def _taken(e: ev.RequestTaken) -> tuple[str, str]:
    moves = e.body.get("moves")
    detail = e.body.get("text") or e.body.get("note") or (_moves(moves) if moves else "")
    return "accent", f"{_v(e.who, 40)}: {_v(e.what, 40)} {_v(detail)}".rstrip()


def _moves(moves: Any) -> str:
    try:
        return " + ".join(f"{m['action']}({', '.join(str(a[1]) for a in m.get('arguments', ()))})" for m in moves)
    except (TypeError, KeyError, IndexError, AttributeError):
        return str(moves)


def _candidate(e: ev.CandidateEnded) -> tuple[str, str]:
    outcome = e.outcome
    name = fmt.outcome_name(kind_of(outcome), getattr(outcome, "verdict", None), e.candidate)
    glyph, word, tone = fmt.outcome_mark(name)
    parts = [f"{glyph} #{e.candidate} {word}"]
    if isinstance(outcome, Measured):
        parts.append(fmt.time(outcome.avg_us))
    if isinstance(outcome, WrongAnswer):
        parts.append(f"{outcome.failure} {_v(outcome.input_set, 40)}".rstrip())
    if e.proposal is not None and e.proposal.moves:
        parts.append(_v(e.proposal.text))
    if outcome.reason:
        parts.append(_v(outcome.reason))
    return tone, "  ".join(parts)


def _planned(e: ev.Planned) -> tuple[str, str]:
    return "dim", f"#{e.candidate} planned from #{e.proposal.base}: {_v(e.proposal.text)}  ({_v(e.proposal.reason)})"


def _coarse(e: ev.Coarse) -> tuple[str, str]:
    against = "" if e.against is None else f", {fmt.gain(e.gain)} against #{e.against}"
    return "", f"#{e.candidate} measured {fmt.time(e.avg_us)}{against}"


def _gate(e: ev.GateEnded) -> tuple[str, str]:
    r = e.result
    tone = "good" if r.decision == "accept" else "dim"
    codes = f"  {' '.join(r.stale_codes)}" if r.stale_codes else ""
    found = f"{fmt.gain(r.gain)} after {r.series} series, {r.looks} looks"
    return tone, f"gate #{e.candidate} against #{e.against}: {r.decision}, {found}{codes}"


def _guard(e: ev.GuardFired) -> tuple[str, str]:
    who = "" if e.candidate is None else f" at #{e.candidate}"
    return "warn", f"{_v(e.stale.code, 8)}{who}: {_v(e.stale.saw)}: {_v(e.stale.reaction)}"


def _menu(e: ev.MenuChanged) -> tuple[str, str]:
    if e.refused:
        return "bad", f"actions.toml: refused, the old menu stays: {_v(e.refused)}"
    return "accent", f"menu: {_v('; '.join(e.changes))}"


def _peer(e: ev.PeerTimed) -> tuple[str, str]:
    threads = f", {e.threads} threads" if e.threads else ""
    return (
        "",
        f"peer {_v(e.peer, 40)}: {fmt.time(e.avg_us)}{threads}; best #{e.against} is {fmt.ratio(e.ratio)} as fast",
    )


def _notice(e: ev.Noticed) -> tuple[str, str]:
    return {"info": "", "warning": "warn", "error": "bad"}[e.level], f"{e.level}: {_v(e.text)}"


def _replaced(e: ev.EvaluatorReplaced) -> tuple[str, str]:
    took = "" if e.seconds is None else f" in {fmt.time(e.seconds * 1e6, 3)}"
    return "warn", f"evaluator replaced{took}: {_v(e.reason)}"


def _played_off(e: ev.PlayedOff) -> tuple[str, str]:
    if e.result is None:
        ended = "no result" if e.ended is None else f"{kind_of(e.ended)}: {_v(e.ended.reason)}"
        return "warn", f"play-off: #{e.candidate} against #{e.against}: {ended}"
    tone = "good" if e.result.decision == "accept" else "dim"
    return tone, f"play-off: #{e.candidate} against #{e.against}: {e.result.decision}, {fmt.gain(e.result.gain)}"


def _changes(changes: tuple[tuple[str, str, str], ...]) -> str:
    return "; ".join(f"{_v(name, 40)} {_v(old, 60)} → {_v(new, 60)}" for name, old, new in changes)


_Words = Callable[[Any], tuple[str, str]]

_WORDS: dict[type[ev.Event], _Words] = {
    ev.SessionCreated: _created,
    ev.EngineStarted: lambda e: ("dim", f"engine started, pid {e.pid} on {_v(e.host)}  {_changes(e.changes)}".rstrip()),
    ev.EngineEnded: _ended,
    ev.GapSeen: lambda e: ("warn", f"gap of {fmt.duration(abs(e.seconds))}: {e.what}"),
    ev.Noticed: _notice,
    ev.Probed: lambda e: ("dim", f"compiler {_v(e.compiler)} {_v(e.version)}"),
    ev.SelfTestEnded: _self_test,
    ev.RequestTaken: _taken,
    ev.RequestRefused: lambda e: ("warn", f"{_v(e.who, 40)}: {_v(e.what, 40)} refused: {_v(e.reason)}"),
    ev.RequestUndone: lambda e: ("accent", f"{_v(e.who, 40)}: took back request {_v(e.undoes, 40)}"),
    ev.MenuChanged: _menu,
    ev.SettingsChanged: lambda e: ("accent", f"settings: {_changes(e.changes)}"),
    ev.PausedByGuard: lambda e: ("warnword", f"paused by {_v(e.guard, 40)}: {_v(e.reason)}"),
    ev.RoundBegan: lambda e: ("dim", f"round {e.round} begins with {e.size} slots"),
    ev.BaseReverted: lambda e: ("accent", f"{_v(e.who, 40)}: next proposals start from #{e.base}: {_v(e.reason)}"),
    ev.Planned: _planned,
    ev.BuildEnded: lambda e: ("dim", f"#{e.candidate} built in {fmt.time(e.seconds * 1e6, 3)}"),
    ev.CheckEnded: lambda e: ("dim", f"#{e.candidate} agrees, error {fmt.significant(e.agreement.max_abs_err)}"),
    ev.Coarse: _coarse,
    ev.GateEnded: _gate,
    ev.ProfileEnded: lambda e: ("dim", f"#{e.candidate} profile from {e.profile.source}"),
    ev.CandidateEnded: _candidate,
    ev.StepLost: lambda e: ("warn", f"#{e.candidate} lost its step {_v(e.step, 40)}, tried again"),
    ev.RoundEnded: lambda e: ("strong" if e.accepted else "dim", f"round {e.round} ended, {e.accepted} accepted"),
    ev.Stalled: lambda e: ("warn", f"stalled: {e.rounds} rounds without a win"),
    ev.NoiseCalibrated: lambda e: (
        "",
        f"pair noise {fmt.percent(e.pair_noise, 2)} over {e.pairs} pairs of #{e.against}",
    ),
    ev.IncumbentTimed: lambda e: ("dim", f"#{e.candidate} timed again: {fmt.time(e.avg_us)}"),
    ev.PeerTimed: _peer,
    ev.GuardFired: _guard,
    ev.EvaluatorReplaced: _replaced,
    ev.PlayOffBegan: lambda e: ("strong", "play-off of " + " ".join(f"#{n}" for n in e.candidates)),
    ev.PlayedOff: _played_off,
    ev.ProposalDropped: lambda e: ("warn", f"proposal dropped: {_v(e.proposal.text)}: {_v(e.reason)}"),
}
