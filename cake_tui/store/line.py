"""One line an event, for ``tail``, logs, headless progress and the log pane; outside text is shown literally."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cake_tui import figures
from cake_tui.errors import printable
from cake_tui.model import event as ev
from cake_tui.model.ending import meaning_of, word_of
from cake_tui.model.history import History
from cake_tui.model.measure import GateResult
from cake_tui.model.outcome import Measured, Repeated, Screened, kind_of

_LONGEST = 400

# Kinds that whoever follows a run along does without: the candidate's end says what came of them.
QUIET = (
    ev.SettingsChanged, ev.RoundBegan, ev.Planned, ev.BuildEnded, ev.CheckEnded, ev.Coarse, ev.GateEnded,
    ev.IncumbentTimed,
)  # fmt: skip


def visible(text: str, longest: int = _LONGEST) -> str:
    """Return `text` on one line with control characters made visible; longer text ends in an ellipsis."""
    shown = printable(text[: longest + 1])
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def progress_of(event: ev.Event, history: History) -> str | None:
    """Return the line of an event just folded into `history`, with where the run stands; None for what says little."""
    if isinstance(event, QUIET):
        return None
    beside = ""
    if isinstance(event, ev.EngineEnded) and history.incumbent is not None:
        beside = f"; best: candidate {history.incumbent}, {figures.time(history.incumbent_us)}"
    elif isinstance(event, ev.RoundEnded):
        held = history.incumbent is not None
        best = f"best {figures.time(history.incumbent_us)} (#{history.incumbent})" if held else "no best yet"
        beside = f"; {best}; {history.effective} effective candidates"
    return visible(line_of(event, history) + beside)


def line_of(event: ev.Event, history: History) -> str:
    """Return what an event says; `history` has folded it, and any number of events since.

    Outside text is in it as it came: whoever shows the line makes it harmless.
    """
    make = _LINES.get(type(event))
    return make(event, history) if make is not None else type(event).__name__


def _created(e: ev.SessionCreated, h: History) -> str:
    shapes = " · ".join(shape.text for shape in e.problem.shapes)
    return f'session "{e.name}": {e.problem.kernel} {shapes} on {e.device.name} ({e.backend}), agent {e.agent}'


def _changes(changes: tuple[tuple[str, str, str], ...]) -> str:
    return "; ".join(f"{name}: {old} → {new}" for name, old, new in changes)


def _started(e: ev.EngineStarted, h: History) -> str:
    return f"engine started, PID {e.pid} on {e.host}" + (f"; changed: {_changes(e.changes)}" if e.changes else "")


_GAPS = {
    "wall": "the wall clock was stepped", "stopped": "the engine was stopped", "offline": "no engine ran",
    "no space": "the disk was full",
}  # fmt: skip


def _gap(e: ev.GapSeen, h: History) -> str:
    what = _GAPS.get(e.what, e.what)
    if e.seconds < 0:
        return f"gap of {figures.duration(-e.seconds, exact=True)} back: {what}; it does not count against the budget"
    return f"gap of {figures.duration(e.seconds, exact=True)}: {what}; it does not count against the budget"


def _knew(e: ev.RoundBegan) -> str:
    return "" if e.knew_round is None else f", knowing rounds up to {e.knew_round}"


def _planned(e: ev.Planned, h: History) -> str:
    return f"#{e.candidate} planned from #{e.proposal.base}: {e.proposal.text}  ({e.proposal.reason})"


def _coarse(e: ev.Coarse, h: History) -> str:
    against = "" if e.against is None else f", {figures.gain(e.gain)} against #{e.against}"
    return f"#{e.candidate} measured {figures.time(e.avg_us)}{against}"


def _gate(e: ev.GateEnded, h: History) -> str:
    result = e.result
    codes = f"  {' '.join(result.stale_codes)}" if result.stale_codes else ""
    found = f"{figures.gain(result.gain)} after {result.series} series, {result.looks} looks"
    return f"gate #{e.candidate} against #{e.against}: {decided(result)}, {found}{codes}"


def decided(result: GateResult) -> str:
    """Return the word for what the gate found."""
    if result.decision == "accept":
        return word_of("accepted")
    if result.decision == "reject":
        return word_of("slower" if result.surely_slower else "no_gain")
    return word_of(result.decision)


def _candidate(e: ev.CandidateEnded, h: History) -> str:
    outcome = e.outcome
    row = h.rows[e.candidate] if 0 <= e.candidate < len(h.rows) else None
    moves = row.proposal.text if row is not None else ""
    if isinstance(outcome, Measured):
        said = word_of(row.ended_as if row is not None else outcome.verdict or kind_of(outcome))
        time_us = row.time_us if row is not None and row.time_us is not None else outcome.avg_us
        gain = f" ({figures.gain(row.gain)})" if row is not None and row.gain is not None and e.candidate else ""
        return f"#{e.candidate} {said} {figures.time(time_us)}{gain}  {moves}"
    reason = meaning_of(h, row) if row is not None and isinstance(outcome, Screened | Repeated) else outcome.reason
    reason = f": {reason}" if reason else ""
    return f"#{e.candidate} {word_of(kind_of(outcome))}{reason}  {moves}"


def _taken(e: ev.RequestTaken, h: History) -> str:
    detail = e.body.get("text") or e.body.get("note") or " ".join(map(str, _listed(e.body.get("actions"))))
    return f"{e.what} by {e.who}" + (f": {detail}" if detail else "")


def _joined(text: str) -> str:
    """Several messages, one a line, as one line."""
    return "; ".join(line.strip() for line in text.split("\n") if line.strip())


def _menu(e: ev.MenuChanged, h: History) -> str:
    if e.refused:
        return f"actions.toml is refused, the actions before stay: {_joined(e.refused)}"
    return f"actions: {'; '.join(e.changes)}"


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _peer(e: ev.PeerTimed, h: History) -> str:
    threads = f", {e.threads} threads" if e.threads else ""
    beside = f"the best (#{e.against}) is {figures.ratio(e.ratio, 4)} as fast"
    return f"peer {e.peer}: {figures.time(e.avg_us)}{threads}; {beside}"


def _guard(e: ev.GuardFired, h: History) -> str:
    at = "" if e.candidate is None else f" at #{e.candidate}"
    return f"{e.stale.code}{at}: {e.stale.saw}; {e.stale.reaction}"


def _replaced(e: ev.EvaluatorReplaced, h: History) -> str:
    took = f" in {figures.duration(e.seconds, exact=True)}" if e.seconds is not None else ""
    return f"evaluator replaced{took}: {e.reason}"


def _play_off(e: ev.PlayOffBegan, h: History) -> str:
    if not e.candidates:
        return "play-off: there is no other candidate to set against the best"
    return f"play-off: {', '.join(f'#{number}' for number in e.candidates)} against the best"


def _profiled(e: ev.Profiled, h: History) -> str:
    if e.refused:
        return f"no profiles: {e.refused}{f'; {e.cure}' if e.cure else ''}"
    said = [f"#{number} {', '.join(one.label for one in found[:2])}" for number, found in e.findings if found]
    said += [f"#{number} {why}" for number, why in e.failed]
    names = ", ".join(f"#{number}" for number, _ in e.profiles)
    took = figures.duration(e.seconds, exact=True)
    return f"profiled {names or 'nothing'} in {took}" + (f": {'; '.join(said)}" if said else "")


def _sanitized(e: ev.Sanitized, h: History) -> str:
    if e.refused:
        return f"{e.tool} of #{e.candidate}: {e.refused}{f'; {e.cure}' if e.cure else ''}"
    if not e.errors:
        return f"{e.tool} of #{e.candidate}: nothing found"
    first = f": {e.complaints[0]}" if e.complaints else ""
    return f"{e.tool} of #{e.candidate}: {e.errors} errors{first}{f' ({e.cure})' if e.cure else ''}"


def _played_off(e: ev.PlayedOff, h: History) -> str:
    ended = "not decided" if e.ended is None else f"{kind_of(e.ended)}: {e.ended.reason}"
    said = ended if e.result is None else f"{decided(e.result)}, {figures.gain(e.result.gain)}"
    return f"play-off: #{e.candidate} against #{e.against}: {said}"


_LINES: dict[type[ev.Event], Callable[[Any, History], str]] = {
    ev.SessionCreated: _created,
    ev.EngineStarted: _started,
    ev.EngineEnded: lambda e, h: f"{e.state.upper()}: {e.reason}",
    ev.GapSeen: _gap,
    ev.Noticed: lambda e, h: f"{e.level}: {e.text}",
    ev.Probed: lambda e, h: f"compiler: {e.version}",
    ev.SelfTestEnded: lambda e, h: f"self-test of the check: {len(e.cases)} cases as expected",
    ev.RequestTaken: _taken,
    ev.RequestRefused: lambda e, h: f"refused {e.what} by {e.who}: {_joined(e.reason)}",
    ev.RequestUndone: lambda e, h: f"undo by {e.who}: {h.undone.get(e.undoes, e.undoes)}",
    ev.MenuChanged: _menu,
    ev.SettingsChanged: lambda e, h: f"settings: {_changes(e.changes)}",
    ev.PausedByGuard: lambda e, h: f"PAUSED: {e.guard}: {e.reason}",
    ev.RoundBegan: lambda e, h: f"round {e.round} begins with {e.size} slots{_knew(e)}",
    ev.BaseReverted: lambda e, h: f"revert by {e.who}: the next round starts from candidate {e.base}",
    ev.Planned: _planned,
    ev.BuildEnded: lambda e, h: f"#{e.candidate} built in {figures.duration(e.seconds, exact=True)}",
    ev.CheckEnded: lambda e, h: f"#{e.candidate} agrees, error {figures.significant(e.agreement.max_abs_err)}",
    ev.Coarse: _coarse,
    ev.GateEnded: _gate,
    ev.CandidateEnded: _candidate,
    ev.StepLost: lambda e, h: f"#{e.candidate} goes on: the step after {e.step} was lost",
    ev.RoundEnded: lambda e, h: f"round {e.round}: {e.accepted} accepted",
    ev.Stalled: lambda e, h: f"STALLED {e.rounds} rounds without a win",
    ev.NoiseCalibrated: lambda e, h: f"pair noise {figures.percent(e.pair_noise, 2)} ({e.pairs} pairs of #{e.against})",
    ev.IncumbentTimed: lambda e, h: f"#{e.candidate} timed again: {figures.time(e.avg_us)}",
    ev.PeerTimed: _peer,
    ev.GuardFired: _guard,
    ev.EvaluatorReplaced: _replaced,
    ev.PlayOffBegan: _play_off,
    ev.PlayedOff: _played_off,
    ev.Profiled: _profiled,
    ev.Sanitized: _sanitized,
    ev.ProposalDropped: lambda e, h: f"dropped {e.proposal.text}: {e.reason}",
}
