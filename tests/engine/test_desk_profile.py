"""The request for a profile: what it names, and why it is refused where it cannot be met."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cake_tui.config import Settings
from cake_tui.engine.desk import Desk
from cake_tui.model import event as ev
from cake_tui.model.device import Device
from cake_tui.model.history import History
from cake_tui.model.move import Proposal
from cake_tui.model.outcome import BuildFailed, Measured
from cake_tui.model.schedule import Schedule
from cake_tui.store.inbox import Request
from tests.matmul import MATMUL
from tests.menu.sample import CPU, GPU

START = Proposal(0, (), "", "start", "start")


def session(device: Device) -> History:
    """Candidate 0 has a time, candidate 1 was never built."""
    history = History()
    events = (
        ev.SessionCreated(name="s", problem=MATMUL, device=device, backend="x", agent="x", settings=Settings().flat(),
                          versions={}),
        ev.EngineStarted(pid=1, host="here"),
        *(ev.Planned(candidate=number, round=number, proposal=START, level=None, schedule=Schedule.of("naive"),
                     predicted_us=None, source_sha256=str(number)) for number in (0, 1)),
        ev.Coarse(candidate=0, against=None, seconds=1.0, avg_us=70.0, runs_us=(70.0,), gain=0.0),
        ev.CandidateEnded(candidate=0, round=0, outcome=Measured(avg_us=70.0)),
        ev.CandidateEnded(candidate=1, round=1, outcome=BuildFailed(reason="no")),
    )  # fmt: skip
    for seq, event in enumerate(events, 1):
        history.apply(msgspec.structs.replace(event, seq=seq))
    return history


def answer(history: History, **body: Any) -> ev.Event:
    desk = Desk(None, lambda settings: None)  # type: ignore[arg-type]  # this kind of request asks no menu
    (event,) = desk.answer(Request("1", "sam", "profile", body), history)
    return event


@pytest.mark.parametrize(("body", "text"), [({}, "#0"), ({"candidate": 0, "sanitize": True}, "#0 for races")])
def test_a_measured_candidate_is_queued_and_the_best_is_the_default(body: dict[str, Any], text: str) -> None:
    history = session(GPU)
    event = answer(history, **body)
    assert isinstance(event, ev.RequestTaken)
    assert str(event.body["text"]).startswith(text)
    history.apply(event)
    assert (history.wanted_profiles, history.wanted_checks) == (((), (0,)) if body else ((0,), ()))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"candidate": 1}, "no time"), ({"candidate": 2}, "0 to 1"), ({"candidate": -1}, "0 to 1"),
        ({"candidate": "0"}, "0 to 1"), ({"candidate": True}, "0 to 1"), ({"candidate": 10**30}, "0 to 1"),
        ({"candidate": None}, "0 to 1"),
    ],
)  # fmt: skip
def test_who_cannot_be_profiled_is_refused_with_the_reason(body: dict[str, Any], why: str) -> None:
    event = answer(session(GPU), **body)
    assert isinstance(event, ev.RequestRefused)
    assert why in event.reason


def test_a_session_on_the_cpu_says_that_it_has_no_profiler() -> None:
    event = answer(session(CPU))
    assert isinstance(event, ev.RequestRefused)
    assert "GPU" in event.reason
