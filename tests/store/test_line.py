"""Lines about events: one each, for every kind, with outside text shown literally."""

from __future__ import annotations

from typing import get_args

from cake_tui.model import event as ev
from cake_tui.model.history import History
from cake_tui.model.measure import GateResult, Stale
from cake_tui.model.move import Move, Proposal
from cake_tui.model.outcome import BuildFailed, Measured
from cake_tui.store.line import line_of, progress_of, visible
from tests.store import journals

HOSTILE = "k.cu(12): error: mm<[/BM]> [/dim] [/ \x1b[31m\r\n\0\u202e" + "x" * 10_000


def hostile_events() -> list[ev.Event]:
    result = GateResult("undecided", 0.0, 0.0, 1, 4, False, HOSTILE, 1.0, 1.0)
    proposal = Proposal(0, (Move(HOSTILE, (("a", HOSTILE),)),), HOSTILE, "llm", HOSTILE)
    return [
        ev.EngineEnded(state="failed", reason=HOSTILE, exit_code=1),
        ev.GapSeen(seconds=36_000.0, what="wall"),
        ev.Noticed(level="warning", text=HOSTILE),
        ev.Probed(compiler=HOSTILE, version=HOSTILE),
        ev.RequestTaken(id="i", who=HOSTILE, what="mark", body={"note": HOSTILE}),
        ev.RequestTaken(id="j", who="w", what="disable", body={"actions": [HOSTILE]}),
        ev.RequestRefused(id="k", who=HOSTILE, what=HOSTILE, reason=HOSTILE),
        ev.RequestUndone(id="l", who=HOSTILE, undoes=HOSTILE),
        ev.MenuChanged(changes=(HOSTILE,)),
        ev.MenuChanged(changes=(), refused=HOSTILE),
        ev.SettingsChanged(changes=(("a", HOSTILE, HOSTILE),), settings={}),
        ev.PausedByGuard(guard=HOSTILE, reason=HOSTILE),
        ev.BaseReverted(base=0, who=HOSTILE, reason=HOSTILE),
        ev.StepLost(candidate=0, step=HOSTILE),
        ev.Stalled(rounds=20),
        ev.NoiseCalibrated(pair_noise=0.01, pairs=16, against=0),
        ev.IncumbentTimed(candidate=0, avg_us=1.0),
        ev.PeerTimed(peer=HOSTILE, avg_us=1.0, ratio=1.0, against=0),
        ev.GuardFired(candidate=0, stale=Stale("S2", HOSTILE, HOSTILE)),
        ev.EvaluatorReplaced(candidate=0, reason=HOSTILE),
        ev.PlayOffBegan(candidates=(0, 1)),
        ev.PlayedOff(candidate=0, against=0, seconds=1.0, result=result),
        ev.PlayedOff(candidate=0, against=0, seconds=1.0, ended=BuildFailed(reason=HOSTILE)),
        ev.ProposalDropped(proposal=proposal, reason=HOSTILE),
        ev.Profiled(seconds=4.2, failed=((0, HOSTILE),)),
        ev.Profiled(seconds=0.0, refused=HOSTILE, cure=HOSTILE),
        ev.Sanitized(candidate=0, tool="racecheck", seconds=2.0, errors=3, complaints=(HOSTILE,)),
        ev.Sanitized(candidate=0, tool="memcheck", seconds=0.0, refused=HOSTILE),
        ev.CandidateEnded(candidate=1, round=1, outcome=BuildFailed(reason=HOSTILE), proposal=proposal),
        ev.CandidateEnded(candidate=2, round=1, outcome=Measured(verdict="slower", avg_us=3.0)),
    ]


def test_every_kind_of_event_makes_at_most_one_plain_line() -> None:
    history = History()
    events = [*journals.unstamped(40), *hostile_events()]
    seen = set()
    for event in journals.stamped(iter(events)):
        history.apply(event)
        line = progress_of(event, history)
        seen.add(type(event))
        assert len(line_of(event, history)) > 3
        assert line is None or (line.isprintable() and 0 < len(line) <= 400)
    assert seen == set(get_args(ev.AnyEvent))


def test_a_clock_that_was_set_back_has_no_negative_duration() -> None:
    said = line_of(ev.GapSeen(seconds=-7200.0, what="wall"), History())
    assert said == "gap of 2 h back: the wall clock was stepped; it does not count against the budget"


def test_a_play_off_without_anybody_says_so() -> None:
    assert line_of(ev.PlayOffBegan(candidates=()), History()) == (
        "play-off: there is no other candidate to set against the best"
    )
    assert line_of(ev.PlayOffBegan(candidates=(3, 1)), History()) == "play-off: #3, #1 against the best"


def test_outside_text_is_shown_as_it_is_but_for_control_characters() -> None:
    event = ev.Noticed(level="error", text="[/dim] a[i][/*pad*/] 三 🎂 \x1b[2J\n")
    assert progress_of(event, History()) == "error: [/dim] a[i][/*pad*/] 三 🎂 \\x1b[2J\\n"
    assert visible("x" * 500) == "x" * 399 + "…"
