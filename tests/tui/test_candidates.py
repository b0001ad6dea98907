"""What is shown of candidates: details with everything on record, two side by side, copies, the action space."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import msgspec
import pytest
from textual.pilot import Pilot

from cake_tui.model import event as ev
from cake_tui.model.diagnostic import Diagnostic
from cake_tui.model.facts import Agreement, Profile
from cake_tui.model.finding import Finding
from cake_tui.model.move import Move, Proposal
from cake_tui.model.outcome import BuildFailed, Rejected
from cake_tui.tui.app import CakeApp
from cake_tui.tui.clipboard import LARGEST
from cake_tui.tui.record import Record
from tests.tui.conftest import app_of
from tests.tui.picture import text_of
from tests.tui.pilot import play, press, settle, text_after
from tests.tui.sample import DEVICE, Sample


def document(app: CakeApp, number: int, width: int = 120) -> str:
    """All lines of a candidate's details, in a terminal that is high enough for them."""
    seen: list[str] = []

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        app.choose(number)
        await press(app, pilot, "enter")
        seen.extend(line.strip("│╭╮╰╯─ ").rstrip() for line in text_of(app).splitlines())

    play(app, script, (width, 260))
    return "\n".join(seen)


def last_of(sample: Sample, outcome: str) -> int:
    """The number of the last candidate that ended so."""
    lines = (sample.folder / "journal.jsonl").read_bytes().splitlines()
    ended = [event for event in map(json.loads, lines) if event["kind"] == "CandidateEnded"]
    found = [e["candidate"] for e in ended if outcome in (e["outcome"]["kind"], e["outcome"].get("verdict"))]
    return int(found[-1])


# -- details -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [120, 80, 40])
def test_the_details_of_a_win_hold_everything_on_record(width: int, finished_sample: Sample) -> None:
    number = last_of(finished_sample, "accepted")
    text = document(app_of(finished_sample), number, width)
    for heading in ("why it was tried", "schedule", "times", "findings", "profile", "agreement", "build", "source"):
        assert f"▾ {heading}" in text, heading
    words = " ".join(text.split())
    for told in (
        "● accepted", "low arithmetic intensity", "finding, by bandit", "structure packed", "by the cost model",
        "the median of", "gate accepted: +", "by more than 0.5 %, confirmed by fresh pairs",
        "after 8 series in 2 looks", "memory bound 71 % sure", "l2_share 0.64",
        "keep a panel of B in L1", "apply_register_block", "static+model", "max_abs_err 1.1e-05", "in 0.4 s",
        "#include <stddef.h>", "program matmul_bias_relu ir 1", "feedback.json",
    ):  # fmt: skip
        assert " ".join(told.split()) in words, told


def test_knobs_that_a_move_changed_stand_beside_what_they_were(finished_sample: Sample) -> None:
    app = app_of(finished_sample)
    app.bridge.poll()
    history = app.bridge.fold.history
    row = next(
        row for row in reversed(history.rows)
        if row.schedule and row.number and (base := history.rows[row.proposal.base].schedule)
        and base.structure == row.schedule.structure and base.knob("thread_m") != row.schedule.knob("thread_m")
    )  # fmt: skip
    base = history.rows[row.proposal.base].schedule
    assert base is not None
    assert row.schedule is not None
    text = document(app_of(finished_sample), row.number)
    assert re.search(rf"thread_m +{row.schedule.knob('thread_m')}  was {base.knob('thread_m')}\n", text)
    assert re.search(r"pad +0\n", text), "what did not change has no past"


def test_a_refusal_names_the_law_and_a_failed_build_shows_head_and_tail_of_its_log(sample: Sample) -> None:
    proposal = Proposal(sample.incumbent, (Move("apply_unroll", (("factor", 3),)),), "a whim", "random", "bandit")
    law = Diagnostic("vector-registers", "thread_m", "keeps 61 vectors", "at most 32", 7, "micro", "thread_m <= 6")
    log = "\n".join(f"line {number} of the compiler" for number in range(1000))
    sample.put(
        ev.CandidateEnded(candidate=sample.number, round=90, outcome=Rejected(diagnostics=(law,)), proposal=proposal),
        ev.CandidateEnded(
            candidate=sample.number + 1, round=90, proposal=proposal,
            outcome=BuildFailed(step="build", reason="cc: exit 1", log=log, log_bytes=len(log)),
        ),
    )  # fmt: skip
    refused = " ".join(document(app_of(sample), sample.number).split())
    assert "refused by vector-registers, line 7 (micro): thread_m: keeps 61 vectors; needed: at most 32" in refused
    failed = document(app_of(sample), sample.number + 1)
    assert "line 0 of the compiler" in failed
    assert "line 999 of the compiler" in failed
    assert "… 920 lines …" in failed
    assert "line 500 of the compiler" not in failed
    assert "no source on record" in failed


def test_prompt_and_reply_are_shown_where_there_are_any(sample: Sample) -> None:
    folder = sample.folder / "candidates" / str(sample.incumbent)
    (folder / "prompt.txt").write_text("You tune\nkernels [/b]", encoding="utf-8")
    (folder / "reply.txt").write_text("apply_unroll(8), for the loads", encoding="utf-8")
    text = document(app_of(sample), sample.incumbent)
    assert "kernels [/b]" in text
    assert "apply_unroll(8), for the loads" in text


def test_keys_go_to_sections_to_other_candidates_and_to_the_diff(finished_sample: Sample) -> None:
    app = app_of(finished_sample)
    number = finished_sample.incumbent

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        app.choose(number)
        await press(app, pilot, "enter", "tab", "tab")
        assert text_of(app).splitlines()[2].strip("│ ").startswith("▾ schedule")
        await press(app, pilot, "right_square_bracket")
        assert f"candidate {number + 1} of first" in text_of(app)
        await press(app, pilot, "left_square_bracket", "d")
        base = app.bridge.fold.history.rows[number].proposal.base
        assert f"--- #{base}" in text_of(app)
        assert f"+++ #{number}" in text_of(app)
        await press(app, pilot, "escape", "P")
        assert "▾ profile" in text_of(app).splitlines()[2]

    play(app, script)


def test_a_record_is_found_by_its_round_and_holds_no_other_candidates_events(finished_sample: Sample) -> None:
    app = app_of(finished_sample)
    app.bridge.poll()
    view = app.view()
    lines = (finished_sample.folder / "journal.jsonl").read_bytes().splitlines()
    events = [json.loads(line) for line in lines]
    steps = ("Planned", "BuildEnded", "CheckEnded", "Coarse", "GateEnded", "CandidateEnded", "GuardFired")
    for row in view.history.rows:
        wanted = [event["seq"] for event in events if event.get("candidate") == row.number and event["kind"] in steps]
        assert [event.seq for event in Record(view, row).events] == wanted


def test_in_a_replay_the_details_know_nothing_of_what_comes_later(finished_sample: Sample) -> None:
    app = app_of(finished_sample)
    app.bridge.poll()
    view = app.view()
    row = view.history.rows[40]
    ended = next(
        index for index in range(len(view.journal))
        if isinstance(event := view.journal.event(index), ev.CandidateEnded) and event.candidate == 40
    )  # fmt: skip
    before = msgspec.structs.replace(row)
    assert Record(_at(view, ended), before).last(ev.CandidateEnded) is None
    assert Record(_at(view, ended + 1), before).last(ev.CandidateEnded) is not None


def _at(view: object, cursor: int) -> object:
    from dataclasses import replace

    return replace(view, cursor=cursor)  # type: ignore[type-var]


# -- compare -----------------------------------------------------------------------------------------------


def test_two_candidates_stand_side_by_side_with_what_differs(finished_sample: Sample) -> None:
    app = app_of(finished_sample)
    first, second = last_of(finished_sample, "slower"), finished_sample.incumbent

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        app.choose(first)
        await press(app, pilot, "c")
        assert f"#{first} is held" in text_of(app)
        app.choose(second)
        await press(app, pilot, "c")
        text = text_of(app)
        assert f"#{first} beside #{second}" in text
        rows = app.bridge.fold.history.rows
        for name, values in (
            ("ended", ("· slower", "● accepted")),
            ("thread_m", tuple(str(rows[number].schedule.knob("thread_m")) for number in (first, second))),  # type: ignore[union-attr]
        ):
            line = next(line for line in text.splitlines() if f"   {name} " in line)
            assert all(value in line for value in values)
            assert ("≠" in line) == (values[0] != values[1])
        await press(app, pilot, "end")
        assert "candidate" in text_of(app)
        assert f"+++ #{second}" in text_of(app) or f"-/* matmul_bias_relu: packed, candidate {first} */" in text_of(app)

    play(app, script)


def test_held_twice_it_is_compared_with_the_best(finished_sample: Sample) -> None:
    app = app_of(finished_sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        app.choose(3)
        await press(app, pilot, "c", "c")
        assert f"#3 beside #{finished_sample.incumbent}" in text_of(app)
        await press(app, pilot, "escape")
        app.choose(finished_sample.incumbent)
        await press(app, pilot, "c", "c")
        assert "is the best itself: nothing to compare" in text_of(app)

    play(app, script)


# -- copies ------------------------------------------------------------------------------------------------


def test_y_copies_what_the_pane_holds_and_names_its_file(finished_sample: Sample) -> None:
    app = app_of(finished_sample)
    source = finished_sample.folder / "best" / "kernel.c"
    feedback = finished_sample.folder / "candidates" / "150" / "feedback.json"

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "1", "y")
        assert app.clipboard == source.read_text(encoding="utf-8")
        assert f"OSC 52); it is in {str(source)[:20]}" in text_of(app)
        await press(app, pilot, "2", "y")
        assert app.clipboard == feedback.read_text(encoding="utf-8")
        await press(app, pilot, "J", "y")
        assert "OSC 52" in text_of(app)
        await press(app, pilot, "escape", "4", "y")
        assert "outcome" in app.clipboard.splitlines()[0]
        await press(app, pilot, "1", "d", "y")
        assert app.clipboard.startswith("--- #")
        await press(app, pilot, "r", "y")
        assert app.clipboard.startswith("program matmul_bias_relu")

    play(app, script)


def test_what_is_too_long_for_a_terminal_is_named_by_its_file(sample: Sample) -> None:
    path = sample.folder / "best" / "kernel.c"
    path.write_text("int x;\n" * 20_000)
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "1", "y")
        assert f"140,000 bytes are more than terminals take; it is in {str(path)[:20]}" in text_of(app)
        assert app.clipboard == ""

    assert LARGEST < 140_000
    play(app, script)


# -- actions, stop, read-only ------------------------------------------------------------------------------


def requests_of(sample: Sample) -> list[dict[str, object]]:
    """Requests that lie in the inbox, oldest first."""
    return [json.loads(path.read_text()) for path in sorted((sample.folder / "inbox").glob("*.json"))]


def test_an_action_is_disabled_and_enabled_from_the_list(sample: Sample) -> None:
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "a")
        line = next(line for line in text_of(app).splitlines() if "[x] on" in line)
        name = line.split("on", 1)[1].split("(")[0].strip()
        await press(app, pilot, "space")
        assert f"disable… {' ' * 4}{name}"[:9] in text_of(app)
        (sent,) = requests_of(sample)
        assert (sent["what"], sent["body"]) == ("disable", {"actions": [name]})
        sample.put(ev.RequestTaken(id=str(sent["id"]), who="sam", what="disable", body={"actions": [name]}))
        app.tick()
        await settle(app, pilot)
        assert re.search(rf"\[ \] off +{name}\(", text_of(app))
        await press(app, pilot, "enter")
        assert requests_of(sample)[-1]["what"] == "enable"
        await press(app, pilot, "escape", "6", "z")
        assert re.search(rf"{name} .*off", text_of(app))

    play(app, script)


def test_the_run_is_stopped_only_by_its_name(sample: Sample) -> None:
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "Q")
        seen = " ".join(text_of(app).replace("│", " ").split())
        assert 'To stop the run, type its name, without the quotes: "first"' in seen
        assert '"cake-tui resume first" goes on with it' in seen
        await press(app, pilot, *"yes", "enter")
        assert 'not stopped: you typed "yes", the run\'s name is "first"' in text_of(app)
        assert requests_of(sample) == []
        await press(app, pilot, *"ip")  # typed on into the field, which is still there: they are no commands
        assert "inject a move" not in text_of(app)
        await press(app, pilot, *["backspace"] * 5, "enter")
        assert "nothing is typed yet" in text_of(app)
        await press(app, pilot, *"first", "enter")
        assert [request["what"] for request in requests_of(sample)] == ["stop"]
        assert "To stop the run" not in text_of(app)

    play(app, script)


def test_read_only_can_be_switched_unless_it_was_asked_for(sample: Sample) -> None:
    async def toggled(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "w", "p", "a", "Q", "m")
        assert requests_of(sample) == []
        assert "read-only" in text_of(app).splitlines()[2]
        await press(app, pilot, "w", "p")
        assert [request["what"] for request in requests_of(sample)] == ["pause"]

    async def fixed(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "w")
        assert "opened with --read-only" in text_of(app)
        await press(app, pilot, "p")
        assert len(requests_of(sample)) == 1

    play(app_of(sample), toggled)
    play(app_of(sample, read_only=True), fixed)


def test_a_request_says_in_about_how_many_seconds_it_acts(sample: Sample) -> None:
    sample.put(ev.CheckEnded(candidate=sample.number - 2, seconds=4.4, agreement=Agreement(1e-5, 1e-6, 10.0, 0.2)))
    text = text_after(app_of(sample), ["p"])
    assert "pause: sent; it acts between two steps of the run, in about" in text


def test_the_clipboard_sequence_is_the_terminals_own(finished_sample: Sample, tmp_path: Path) -> None:
    """OSC 52 with base64, as terminals and tmux (set-clipboard on) take it."""
    app = app_of(finished_sample)
    written: list[str] = []

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        driver = app._driver
        assert driver is not None
        driver.write = written.append  # type: ignore[method-assign]
        await press(app, pilot, "1", "y")

    play(app, script)
    (sequence,) = [text for text in written if text.startswith("\x1b]52;c;")]
    copied = base64.b64decode(sequence.removeprefix("\x1b]52;c;").removesuffix("\x07")).decode()
    assert copied == (finished_sample.folder / "best" / "kernel.c").read_text(encoding="utf-8")


def test_on_a_gpu_the_profiler_is_asked_for_and_its_counters_are_shown(tmp_path: Path) -> None:
    sample = Sample(tmp_path / "gpu", device=msgspec.structs.replace(DEVICE, kind="cuda", target="cuda"))
    sample.run(6)
    number = sample.incumbent
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        app.choose(number)
        await press(app, pilot, "P")
        (sent,) = requests_of(sample)
        assert (sent["what"], sent["body"]) == ("profile", {"candidate": number})
        sample.put(ev.RequestTaken(id=str(sent["id"]), who="sam", what="profile", body={"candidate": number}))
        app.tick()
        await press(app, pilot, "6", "z")
        assert f"profile of #{number}  after this round" in text_of(app)
        stall = Finding("memory_bound", "waits for loads", "structural", 0.8)
        counters = Profile(source="ncu", sm_occupancy_pct=41.5, stalls=(("long_scoreboard", 0.46),))
        sample.put(
            ev.Profiled(seconds=3.0, profiles=((number, counters),), findings=((number, (stall,)),)),
            ev.Sanitized(candidate=number, tool="racecheck", seconds=2.0, errors=2, complaints=("a hazard [/b]",)),
        )
        app.tick()
        await press(app, pilot, "P", "shift+tab")
        text = " ".join(text_of(app).split())
        for told in ("source ncu", "sm_occupancy_pct 41.5", "waits for loads 80 % sure", "2 errors", "a hazard [/b]"):
            assert told in text, told
        assert len(requests_of(sample)) == 1

    play(app, script)
