"""What somebody who opens the viewer for the first time reads: the right thing opens, what cannot act says so."""

from __future__ import annotations

import re

from textual.pilot import Pilot

from cake_tui.model import event as ev
from cake_tui.model.move import Move, Proposal
from cake_tui.tui.app import CakeApp
from cake_tui.tui.replay import ReplayBridge
from tests.tui.conftest import app_of
from tests.tui.picture import text_of
from tests.tui.pilot import play, press, settle, text_after
from tests.tui.sample import Sample


def recording(sample: Sample) -> CakeApp:
    return CakeApp(ReplayBridge(sample.folder, now=sample.now), you="sam")


def test_enter_in_the_best_kernels_pane_opens_the_best(sample: Sample) -> None:
    seen = text_after(app_of(sample), ["4", "end", "1", "enter"])
    assert f"candidate {sample.incumbent} of first" in seen


def test_enter_in_the_log_shows_its_lines_whole(sample: Sample) -> None:
    sample.put(ev.Noticed(level="warning", text="first line " + "x" * 150 + " END OF IT\nsecond line"))
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "7")
        assert "END OF IT" not in text_of(app)
        await press(app, pilot, "enter")
        seen = text_of(app)
        assert "log, whole lines" in seen
        assert "END OF IT" in seen
        assert re.search(r"│ +second line +│", seen)
        await press(app, pilot, "escape", "up", "enter")  # until the last line on screen
        assert "second line" not in text_of(app)

    play(app, script)


# -- notices at the start ----------------------------------------------------------------------------------


def test_what_was_wrong_at_the_start_neither_hides_the_keys_nor_what_runs_now(sample: Sample) -> None:
    """The log has it; line 3 gives it room only where what runs now has its own."""
    lines = sample.folder.joinpath("journal.jsonl").read_bytes().splitlines(keepends=True)
    sample.folder.joinpath("journal.jsonl").write_bytes(lines[0])
    sample.seq, sample.number, sample.round = 1, 0, 0
    sample.put(ev.Noticed(level="warning", text="something is odd about this machine: " + "w" * 80))
    sample.start()
    sample.run(2)
    proposal = Proposal(0, (Move("split_k", (("parts", 2),)),), "why", "finding", "bandit")
    schedule = sample.schedule_of_best()
    sample._plan(proposal, schedule, None)
    seen = text_after(app_of(sample), size=(90, 30)).splitlines()
    assert f"#{sample.number} building" in seen[2]
    assert "something is odd" not in seen[2]
    assert "q detach" in seen[-1]


# -- a recording -------------------------------------------------------------------------------------------


def test_keys_that_steer_say_in_a_recording_that_it_is_one(sample: Sample) -> None:
    app = recording(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        for key, word in {"p": "pause", "i": "inject", "u": "undo", "a": "actions", "m": "mark", "Q": "stop"}.items():
            app.message = None
            await press(app, pilot, key)
            assert "this is a recording" in text_of(app).splitlines()[-1], key
            assert word in text_of(app).splitlines()[-1]

    play(app, script)


def test_keys_of_a_recording_say_in_a_live_view_what_they_are_for(sample: Sample) -> None:
    said = text_after(app_of(sample), ["at"]).splitlines()[-1]
    assert "cake-tui replay first" in said


def test_a_recording_in_a_small_terminal_says_where_it_is(sample: Sample) -> None:
    app = recording(sample)
    seen = text_after(app, size=(40, 12)).splitlines()
    assert f"event {len(app.bridge.reader)} of {len(app.bridge.reader)}" in seen[0]
    assert "┃" in seen[2]


def test_the_key_that_plays_is_named_for_what_it_does_now(sample: Sample) -> None:
    app = recording(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        assert "space play" in text_of(app).splitlines()[-1]
        await press(app, pilot, "at", *"start", "enter", "space")
        assert "space pause" in text_of(app).splitlines()[-1]
        await press(app, pilot, "space")
        await settle(app, pilot)
        assert "space play" in text_of(app).splitlines()[-1]

    play(app, script)
