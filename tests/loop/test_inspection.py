"""The profiler's queue and the checkers beside the loop, with stand-ins for the tools' programs."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cake_tui import registry
from cake_tui.agents.random import PLUGIN as RANDOM
from cake_tui.ir.cost import Estimate
from cake_tui.model import event as ev
from cake_tui.model.facts import Profile
from cake_tui.model.feedback import BestSoFar
from cake_tui.model.outcome import Measured
from cake_tui.rules import Evidence
from cake_tui.steps import inspect
from cake_tui.steps.context import Explained
from cake_tui.steps.tell import Told
from tests.loop.driving import Session
from tests.loop.stand_in_tools import Tools

MINUTE = 60_000  # of the session's clock, in thousandths of a second, between two events


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Tools:
    """The simulated backend with tools of its own for as long as the test."""
    made = Tools()
    monkeypatch.setattr(registry.load("backends", "simulated"), "inspector", made, raising=False)
    return made


def session(store: Path, surface: str = "ridge,noise=0,drift=0,failures=0", **settings: Any) -> Session:
    made = Session(store, surface, **{"candidates": 10, "profile_rounds": 1, **settings})
    made.clock = itertools.count(0, MINUTE)
    return made


def agent() -> Any:
    return RANDOM({})


# -- the queue -----------------------------------------------------------------------------------------------


def test_the_top_two_of_each_round_and_the_best_are_profiled_in_one_call_a_round(tmp_path: Path, tools: Tools) -> None:
    run = session(tmp_path)
    run.run(agent())
    calls = [numbers for tool, numbers in tools.calls if tool == "ncu"]
    assert 0 in calls[0]
    assert len(calls) == len(run.of(ev.Profiled)) <= len(run.of(ev.RoundEnded))
    flat = [number for numbers in calls for number in numbers]
    assert len(flat) == len(set(flat))  # nobody twice
    for round_number in {row.round for row in run.history.rows if row.number}:
        rows = [row for row in run.history.rows if row.round == round_number and row.outcome == "Measured"]
        best = sorted(rows, key=lambda row: -(row.standing or 0.0))[:2]
        assert all(row.profiled for row in best)
        assert sum(row.profiled for row in rows) <= 2 + any(row.verdict == "accepted" for row in rows)


def test_what_the_profiler_says_reaches_the_next_round_and_the_feedback(tmp_path: Path, tools: Tools) -> None:
    run = session(tmp_path)
    run.run(agent(), until=lambda event: isinstance(event, ev.Profiled))
    [profiled] = run.of(ev.Profiled)
    number, profile = profiled.profiles[0]
    assert (profile.source, profile.regs_per_thread, profile.passes, profile.dram_bytes) == ("ncu", 42, 9, 1234567890.0)
    assert dict(profile.stalls)["long_scoreboard"] == pytest.approx(0.75)
    assert profile.flops is not None  # what is known without a profiler stays
    assert run.history.findings == dict(profiled.findings)[run.history.incumbent]
    assert "memory bound" in {finding.label for finding in run.history.findings}
    assert "memory bound" in run.history.rows[number].labels
    feedback = json.loads(run.texts.files[number, "feedback.json"])
    assert feedback["profile"]["source"] == "ncu"
    assert feedback["profile"]["memory_throughput_pct"] == 91.5
    assert "memory bound" in {finding["label"] for finding in feedback["findings"]}
    assert feedback["correctness"]["passed"] is True


def test_profiles_take_at_most_their_share_of_the_time(tmp_path: Path, tools: Tools) -> None:
    run = session(tmp_path)
    run.clock = itertools.count()  # a thousandth of a second an event: no call is affordable
    run.run(agent(), until=lambda event: isinstance(event, ev.RoundEnded) and event.round > 2)
    assert run.of(ev.Profiled) == []
    assert [tool for tool, _ in tools.calls if tool == "ncu"] == []


def test_a_wish_is_met_after_the_round_whatever_the_share(tmp_path: Path, tools: Tools) -> None:
    run = session(tmp_path, profile_share=0)
    run.run(agent(), until=lambda event: isinstance(event, ev.RoundEnded))
    body = {"candidate": 0, "sanitize": False}
    run.record(ev.RequestTaken(id="1", who="sam", what="profile", body=body))
    assert run.history.wanted_profiles == (0,)
    run.run(agent(), until=lambda event: isinstance(event, ev.Profiled))
    [profiled] = run.of(ev.Profiled)
    assert 0 in {number for number, _ in profiled.profiles}
    assert run.history.wanted_profiles == ()


@pytest.mark.parametrize(
    ("mode", "words"), [("permission", ("ERR_NVGPUCTRPERM", "NVreg")), ("missing", ("no ncu", "install Nsight"))]
)
def test_a_profiler_that_may_not_is_told_once_with_its_cure(
    tmp_path: Path, tools: Tools, mode: str, words: tuple[str, str]
) -> None:
    tools.mode = mode
    run = session(tmp_path)
    assert run.run(agent()) is not None
    [only] = run.of(ev.Profiled)
    assert words[0] in only.refused
    assert words[1] in only.cure
    sources = {event.profile.source for event in run.of(ev.CandidateEnded) if event.profile is not None}
    assert sources <= {"static", "static+model"}


def test_a_profiler_that_hangs_is_ended_and_given_up(
    tmp_path: Path, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect, "LIMIT_S", 0.2)
    monkeypatch.setattr(inspect, "REPLAYS", 0)
    tools.mode = "hangs"
    run = session(tmp_path)
    run.run(agent())
    assert 1 <= len(run.of(ev.Profiled)) <= inspect.PATIENCE
    assert all("too long" in event.refused for event in run.of(ev.Profiled))


def test_a_backend_without_tools_is_never_asked(tmp_path: Path) -> None:
    run = session(tmp_path)
    run.run(agent())
    assert run.of(ev.Profiled) == []
    assert run.of(ev.Sanitized) == []


def test_counters_correct_what_the_cost_model_believed_of_bank_conflicts(tmp_path: Path, tools: Tools) -> None:
    run = session(tmp_path, profile_share=0)
    run.run(agent(), until=lambda event: isinstance(event, ev.RoundEnded))
    row = run.history.rows[0]
    calm_us = run.history.calm_us(row)
    assert calm_us is not None
    believed = Estimate("tiled", calm_us / 4.0, calm_us / 4.0, (("conflicts", math.log(8.0)),))
    told = Told(0, "start", BestSoFar(None, row.time_us))
    evidence = Evidence(run.history.problem, run.history.device, row.schedule, Measured(avg_us=calm_us))
    known = Explained(told, evidence, believed)
    with run.context(agent()) as ctx:
        for _ in range(4):  # as often as such a kernel is measured
            inspect._correct(ctx, known, Profile("ncu", bank_conflict_share=0.0), row)
        assert ctx.disproved == {("tiled", "conflicts")}  # and rules hear no more of it
        free = msgspec.structs.replace(believed, terms=(("conflicts", 0.0),))
        assert ctx.correction.apply(free).predicted_us == pytest.approx(calm_us, rel=0.1)


# -- the checkers --------------------------------------------------------------------------------------------


def test_the_best_is_looked_at_once_when_the_run_is_done(tmp_path: Path, tools: Tools) -> None:
    run = session(tmp_path, profile_share=0)
    run.run(agent())
    assert [(event.tool, event.candidate, event.errors) for event in run.of(ev.Sanitized)] == [
        ("memcheck", run.history.incumbent, 0),
        ("racecheck", run.history.incumbent, 0),
    ]
    assert run.history.rows[run.history.incumbent or 0].sanitized == "clean"


def test_a_paused_run_uses_the_time_once(tmp_path: Path, tools: Tools) -> None:
    run = session(tmp_path, profile_share=0)
    run.run(agent(), until=lambda event: isinstance(event, ev.RoundEnded))
    run.record(ev.RequestTaken(id="1", who="sam", what="profile", body={"candidate": 0, "sanitize": True}))
    with run.context(agent()) as ctx:
        for event in inspect.idle(ctx):
            run.record(event)
        assert {event.candidate for event in run.of(ev.Sanitized)} == {0, run.history.incumbent}
        assert list(inspect.idle(ctx)) == []


def test_a_run_that_lost_its_device_asks_no_tool(tmp_path: Path, tools: Tools) -> None:
    run = session(tmp_path, profile_share=0)
    run.run(agent(), until=lambda event: isinstance(event, ev.RoundEnded))
    run.record(ev.PausedByGuard(guard="device", reason="GPU is lost"))
    with run.context(agent()) as ctx:
        assert list(inspect.idle(ctx)) == []
    assert tools.calls == []


def test_errors_of_the_best_are_on_record_in_the_tools_words(tmp_path: Path, tools: Tools) -> None:
    tools.mode = "errors"
    run = session(tmp_path, profile_share=0)
    run.run(agent())
    first = run.of(ev.Sanitized)[0]
    assert first.errors == 2
    assert first.complaints == ("Invalid __global__ write of size 4 bytes at kernel+0x90 in k.cu:7",)
    assert run.history.rows[first.candidate].sanitized == "errors"


def test_a_suspect_is_looked_at_after_its_round(tmp_path: Path, tools: Tools) -> None:
    tools.mode = "errors"
    run = session(tmp_path, "ridge,noise=0,drift=0,crashed=0.6", candidates=12, profile_top=0)
    run.run(agent(), until=lambda event: isinstance(event, ev.Sanitized))
    [event] = run.of(ev.Sanitized)
    assert run.history.rows[event.candidate].suspect
    assert run.history.rows[event.candidate].outcome == "Crashed"
