"""The fold of the journal: rows, tallies, incumbent, queue and state. Engine, loop, agents and viewers read it.

It changes only through ``apply(event)``; folding the same events gives the same value, whoever folds. A journal
with a hole (a damaged line) still folds: a candidate whose beginning is lost gets a row that says so.
"""

from __future__ import annotations

from typing import Any

import msgspec

from cake_tui.model import event as ev
from cake_tui.model.move import Move, Proposal
from cake_tui.model.outcome import EFFECTIVE, FAILED, Interrupted, Measured, WrongAnswer, kind_of
from cake_tui.model.row import Mark, Peer, Queued, Row, Tally, Win
from cake_tui.model.state import State

_EMPTY = Proposal(0, (), "", "start", "")
_SUSPECT = ("race", "guard", "inputs_changed")  # failures of the check that a memory or race checker can place
_DAMAGED = "its record is damaged"
_LARGEST_HOLE = 10_000  # candidates whose record may be missing in a row
_SAME_CLOCK = 0.02  # normal rates that differ by no more are one clock


class History(State):
    """The state of a session as of event `seq`."""

    def apply(self, event: ev.Event) -> None:
        """Fold one event in. Events that change nothing here only move `seq` and the clock."""
        self._tick(event)
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event)

    def _tick(self, event: ev.Event) -> None:
        """Count running time: monotonic differences within one boot while an engine runs unpaused."""
        if event.boot == self.last_boot and self.state == "running" and type(event) is not ev.EngineStarted:
            self.elapsed_s += max(0.0, event.mono - self.last_mono)
        self.last_boot, self.last_mono, self.last_t, self.seq = event.boot, event.mono, event.t, event.seq

    def _count(self, key: str, by: int = 1) -> None:
        self.counts[key] = self.counts.get(key, 0) + by


def _created(h: History, e: ev.SessionCreated) -> None:
    h.session, h.settings = e, dict(e.settings)


def _started(h: History, e: ev.EngineStarted) -> None:
    given = {name: new for name, _, new in e.changes}
    if h.session is not None and ("agent" in given or "goal" in given):
        agent, goal = given.get("agent", h.session.agent), given.get("goal", h.session.goal)
        h.session = msgspec.structs.replace(h.session, agent=agent, goal=goal)
    if h.session is not None and given.get("seed", "").isdigit():
        problem = msgspec.structs.replace(h.session.problem, seed=int(given["seed"]))
        h.session = msgspec.structs.replace(h.session, problem=problem)
    if h.state != "paused":
        h.state, h.state_reason = "running", ""


def _ended_engine(h: History, e: ev.EngineEnded) -> None:
    h.state, h.state_reason, h.exit_code, h.paused_by = e.state, e.reason, e.exit_code, None
    for row in h.in_flight() if e.state == "stopped" else ():
        row.lost = {}  # somebody stopped it: no step took the engine down


def _gap(h: History, e: ev.GapSeen) -> None:
    # The wall clock never counts; time in which nothing could run did pass on the monotonic clock.
    if e.what in ("stopped", "no space"):
        h.elapsed_s = max(0.0, h.elapsed_s - e.seconds)
    h.retime_due = h.incumbent is not None


def _self_test(h: History, e: ev.SelfTestEnded) -> None:
    h.self_tested = True


def _mark(h: History, who: str, text: str) -> None:
    h.marks.append(Mark(len(h.rows), h.elapsed_s, who, text))


def _taken(h: History, e: ev.RequestTaken) -> None:
    h.request_ids[e.id] = "taken"
    body = e.body
    if e.what == "inject":
        moves = msgspec.convert(body.get("moves", ()), tuple[Move, ...])
        h.queue[e.id] = Queued(e.id, e.who, moves, str(body.get("reason", "")), e.seq)
    elif e.what == "pause":
        h.state, h.paused_by, h.state_reason = "paused", e.who, f"by {e.who}"
    elif e.what == "resume":
        h.state, h.paused_by, h.state_reason = "running", None, ""
    elif e.what == "disable":
        h.disabled_actions = tuple(sorted({*h.disabled_actions, *map(str, body.get("actions", ()))}))
    elif e.what == "enable":
        h.disabled_actions = tuple(sorted({*h.disabled_actions} - {*map(str, body.get("actions", ()))}))
    elif e.what == "profile":
        number = body.get("candidate", h.incumbent)
        if isinstance(number, int) and 0 <= number < len(h.rows):
            if body.get("sanitize") is True:
                h.wanted_checks = tuple(dict.fromkeys((*h.wanted_checks, number)))
            else:
                h.wanted_profiles = tuple(dict.fromkeys((*h.wanted_profiles, number)))
    detail = body.get("text") or body.get("note") or " ".join(map(str, body.get("actions", ())))
    _mark(h, e.who, f"{e.what} {detail}".strip())


def _refused(h: History, e: ev.RequestRefused) -> None:
    h.request_ids[e.id] = "refused"
    h.queue.pop(e.id, None)


def _undone(h: History, e: ev.RequestUndone) -> None:
    h.request_ids[e.id] = "taken"
    h.request_ids[e.undoes] = "undone"
    if (taken_back := h.queue.pop(e.undoes, None)) is not None:
        h.undone[e.undoes] = " + ".join(move.text for move in taken_back.moves)


def _settings(h: History, e: ev.SettingsChanged) -> None:
    h.settings = dict(e.settings)


def _paused_by_guard(h: History, e: ev.PausedByGuard) -> None:
    h.state, h.paused_by, h.state_reason = "paused", e.guard, e.reason
    for number in e.again:
        row = _at(h, number)
        if row is not None and not row.again:
            row.again, h.forgiven = True, h.forgiven + 1
            if h.by_source.get(row.source_sha256 or "") == number:
                del h.by_source[row.source_sha256 or ""]
    _mark(h, "guard", f"paused: {e.guard}")


def _round_began(h: History, e: ev.RoundBegan) -> None:
    h.round = e.round
    if h.round > h.base_round:
        h.base_override = None


def _round_ended(h: History, e: ev.RoundEnded) -> None:
    h.finished_round = max(h.finished_round, e.round)
    h.last_round_summary = e.summary


def _stalled(h: History, e: ev.Stalled) -> None:
    h.stalled = True


def _reverted(h: History, e: ev.BaseReverted) -> None:
    h.base_override, h.base_round = e.base, h.round + 1
    h.queue.pop(e.request or "", None)
    _mark(h, e.who, f"revert_last() -> {e.base}")


def _row(h: History, number: int, round_number: int, proposal: Proposal) -> Row | None:
    """Return a new row; rows whose record is missing are filled in before it. None where the number makes no sense."""
    if not len(h.rows) <= number <= len(h.rows) + _LARGEST_HOLE:
        return None
    while len(h.rows) < number:
        _append(h, Row(len(h.rows), round_number, _EMPTY, outcome="Interrupted", reason=_DAMAGED))
    row = Row(number=number, round=round_number, proposal=proposal)
    _append(h, row)
    if proposal.request is not None:
        h.queue.pop(proposal.request, None)
    return row


def _append(h: History, row: Row) -> None:
    h.rows.append(row)
    h._count("total")


def _at(h: History, number: int) -> Row | None:
    """Return a candidate's row; one whose beginning is lost gets a row now."""
    if 0 <= number < len(h.rows):
        return h.rows[number]
    row = _row(h, number, h.round, _EMPTY)
    if row is not None:
        row.outcome, row.reason = "Interrupted", _DAMAGED
    return row


def _standing(h: History, number: int | None) -> float:
    known = number is not None and 0 <= number < len(h.rows)
    return (h.rows[number].standing or 0.0) if known and number is not None else 0.0


def _planned(h: History, e: ev.Planned) -> None:
    row = _row(h, e.candidate, e.round, e.proposal)
    if row is None:
        return
    h.flying.append(row.number)
    row.level, row.schedule, row.predicted_us = e.level, e.schedule, e.predicted_us
    row.source_sha256, row.audit = e.source_sha256, e.audit
    h.last_source_round = max(h.last_source_round, e.round)


def _built(h: History, e: ev.BuildEnded) -> None:
    if (row := _at(h, e.candidate)) is None:
        return
    row.step, row.full_sha256, row.smoke_sha256, row.facts = "build", e.full_sha256, e.smoke_sha256, e.facts


def _checked(h: History, e: ev.CheckEnded) -> None:
    if (row := _at(h, e.candidate)) is None:
        return
    row.step = "check"
    row.max_abs_err, row.bound_share = e.agreement.max_abs_err, e.agreement.bound_share


def _coarse(h: History, e: ev.Coarse) -> None:
    if (row := _at(h, e.candidate)) is None:
        return
    row.step, row.time_us, row.gain, row.against = "measure", e.avg_us, e.gain, e.against
    row.epoch = h.epoch
    row.standing = _standing(h, e.against) + e.gain


def _gated(h: History, e: ev.GateEnded) -> None:
    if (row := _at(h, e.candidate)) is None:
        return
    row.step, row.gain, row.against = "gate", e.result.gain, e.against
    row.standing = _standing(h, e.against) + e.result.gain
    row.behind = e.result.surely_slower
    if e.result.decision == "accept":
        row.time_us, row.epoch = e.result.candidate_us, h.epoch
    if h.incumbent == e.against:
        h.incumbent_us = e.result.holder_us


def _lost(h: History, e: ev.StepLost) -> None:
    if (row := _at(h, e.candidate)) is not None:
        row.lost = {**row.lost, e.step: row.lost.get(e.step, 0) + 1}


def _ended(h: History, e: ev.CandidateEnded) -> None:
    row = h.rows[e.candidate] if 0 <= e.candidate < len(h.rows) else None
    if row is None:
        row = _row(h, e.candidate, e.round, e.proposal or _EMPTY)
        if row is None:
            return
        row.level, row.schedule = e.level, e.schedule
        row.predicted_us, row.source_sha256 = e.predicted_us, e.source_sha256
    outcome, kind = e.outcome, kind_of(e.outcome)
    if kind == "Measured" and row.schedule is None:  # what was measured is lost: nothing can begin or be gated there
        row.time_us = row.standing = row.gain = None
        kind, outcome = "Interrupted", Interrupted(step=row.step, reason=_DAMAGED)
    row.outcome, row.reason, row.elapsed_s = kind, outcome.reason, h.elapsed_s
    if row.number in h.flying:
        h.flying.remove(row.number)
    row.labels = tuple([finding.label for finding in e.findings[:3]])
    h._count(kind)
    if kind in EFFECTIVE:
        h._count("effective")
    if kind in FAILED:
        h._count("failed")
    row.suspect = kind == "Crashed" or getattr(outcome, "failure", None) in _SUSPECT
    if isinstance(outcome, WrongAnswer):
        row.max_abs_err, row.time_us, row.standing = outcome.max_abs_err, None, None
    if isinstance(outcome, Measured):
        row.verdict = outcome.verdict
    else:
        row.repeats = getattr(outcome, "of", None)
        if kind not in EFFECTIVE:
            row.time_us = row.standing = None
    if row.source_sha256 and kind not in ("Repeated", "Screened", "Interrupted") and row.verdict != "noisy":
        h.by_source.setdefault(row.source_sha256, row.number)
    if e.findings:
        h.findings = e.findings
    row.settle()
    # A baseline that has to be timed again, because its end is lost, takes nobody's place.
    if row.verdict == "accepted" or (row.number == 0 and kind == "Measured" and h.incumbent is None):
        _crown(h, row)
    if row.number > 0:
        _tally(h, row, kind)


def _crown(h: History, row: Row) -> None:
    h.incumbent, h.incumbent_us, h.base_override = row.number, row.time_us, None
    h.wins.append(Win(row.number, row.time_us or 0.0, h.elapsed_s, row.standing or 0.0))
    if row.number > 0:
        h._count("accepted")
        h.last_win_round, h.stalled = row.round, False


def _tally(h: History, row: Row, kind: str) -> None:
    if kind in ("Screened", "Repeated", "Interrupted"):
        return
    tallies = [h.actions.setdefault(name, Tally()) for name in dict.fromkeys(m.action for m in row.proposal.moves)]
    if row.schedule is not None:
        tallies.append(h.structures.setdefault(row.schedule.structure, Tally()))
    for tally in tallies:
        tally.count(row)


def _noise(h: History, e: ev.NoiseCalibrated) -> None:
    h.pair_noise, h.noise_of = e.pair_noise, e.against


def _incumbent_timed(h: History, e: ev.IncumbentTimed) -> None:
    if h.incumbent == e.candidate:
        h.incumbent_us, h.retime_due = e.avg_us, False


def _guard_fired(h: History, e: ev.GuardFired) -> None:
    before, now = e.stale.rate_before, e.stale.rate_now
    if before is None or now is None:
        if e.stale.code != "S4":
            return
        before = now = 0.0  # an older record says only that the clock moved
    known = h.clocks or (before,)
    same = (at for at, rate in enumerate(known) if rate and abs(now / rate - 1.0) <= _SAME_CLOCK)
    h.epoch = next(same, len(known))
    h.clocks = known if h.epoch < len(known) else (*known, now)


def _peer(h: History, e: ev.PeerTimed) -> None:
    h.peers[e.peer] = Peer(e.avg_us, e.ratio, e.against, e.threads, e.version)


def _profiled(h: History, e: ev.Profiled) -> None:
    h.inspected_s += e.seconds
    failed = {number for number, _ in e.failed}
    asked = failed | {number for number, _ in e.profiles}
    # What a profiler refuses as a whole it refuses again: nobody waits for it.
    h.wanted_profiles = () if e.refused else tuple(one for one in h.wanted_profiles if one not in asked)
    for number in asked:
        row = _at(h, number)
        if row is not None:
            row.profiled = True
    found = {number: findings for number, findings in e.findings if findings}
    for number, findings in found.items():
        row = _at(h, number)
        if row is not None:
            row.labels = tuple([finding.label for finding in findings[:3]])
    # Agents read what is said of the best: the next proposals start there.
    latest = found.get(-1 if h.incumbent is None else h.incumbent) or next(iter(found.values()), ())
    h.findings = latest or h.findings


def _sanitized(h: History, e: ev.Sanitized) -> None:
    h.inspected_s += e.seconds
    h.wanted_checks = tuple(one for one in h.wanted_checks if one != e.candidate or e.tool == "memcheck")
    row = _at(h, e.candidate)
    if row is not None and row.sanitized != "errors":
        found = "doubtful" if e.cure else "errors"
        row.sanitized = found if e.errors else "refused" if e.refused else row.sanitized or "clean"


def _play_off(h: History, e: ev.PlayOffBegan) -> None:
    h.playing_off = e.candidates


def _dropped(h: History, e: ev.ProposalDropped) -> None:
    h.queue.pop(e.proposal.request or "", None)


def _played_off(h: History, e: ev.PlayedOff) -> None:
    h.playing_off = tuple(number for number in h.playing_off if number != e.candidate)
    row = _at(h, e.candidate)
    if row is not None and e.result is not None and e.result.decision == "accept":
        row.standing = _standing(h, e.against) + e.result.gain
        row.time_us, row.gain, row.against, row.verdict = e.result.candidate_us, e.result.gain, e.against, "accepted"
        row.epoch = h.epoch
        _crown(h, row)


_HANDLERS: dict[type[ev.Event], Any] = {
    ev.SessionCreated: _created,
    ev.EngineStarted: _started,
    ev.EngineEnded: _ended_engine,
    ev.GapSeen: _gap,
    ev.SelfTestEnded: _self_test,
    ev.RequestTaken: _taken,
    ev.RequestRefused: _refused,
    ev.RequestUndone: _undone,
    ev.SettingsChanged: _settings,
    ev.PausedByGuard: _paused_by_guard,
    ev.RoundBegan: _round_began,
    ev.RoundEnded: _round_ended,
    ev.Stalled: _stalled,
    ev.BaseReverted: _reverted,
    ev.Planned: _planned,
    ev.BuildEnded: _built,
    ev.CheckEnded: _checked,
    ev.Coarse: _coarse,
    ev.GateEnded: _gated,
    ev.StepLost: _lost,
    ev.CandidateEnded: _ended,
    ev.NoiseCalibrated: _noise,
    ev.IncumbentTimed: _incumbent_timed,
    ev.PeerTimed: _peer,
    ev.GuardFired: _guard_fired,
    ev.PlayOffBegan: _play_off,
    ev.Profiled: _profiled,
    ev.Sanitized: _sanitized,
    ev.PlayedOff: _played_off,
    ev.ProposalDropped: _dropped,
}
