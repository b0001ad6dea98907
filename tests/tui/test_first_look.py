"""What somebody who opens the viewer for the first time reads: the right thing opens, what cannot act says so."""

from __future__ import annotations

import math
import re
from pathlib import Path

import msgspec
from textual.pilot import Pilot

from cake_tui.model import event as ev
from cake_tui.model.move import Move, Proposal
from cake_tui.tui import sections
from cake_tui.tui.app import CakeApp, load_panes
from cake_tui.tui.keys import KEYS
from cake_tui.tui.replay import ReplayBridge
from tests.tui.conftest import app_of
from tests.tui.picture import text_of
from tests.tui.pilot import play, press, settle, text_after
from tests.tui.sample import DEVICE, Sample


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
        assert "second line" in seen
        await press(app, pilot, "escape", "up", "enter")  # until the last line on screen
        assert "second line" not in text_of(app)

    play(app, script)


# -- a broken actions.toml and what was taken back ----------------------------------------------------------


def test_a_refused_edit_of_the_actions_is_told_at_once_and_is_trouble(sample: Sample) -> None:
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        sample.put(ev.MenuChanged(changes=(), refused="actions.toml:3: no such knob\nactions.toml:9: [/] no value"))
        app.tick()
        await settle(app, pilot)
        told = "actions.toml is refused, the actions before stay: actions.toml:3: no such knob; actions.toml:9: [/] no"
        assert told in text_of(app).splitlines()[-1]
        sample.put(ev.MenuChanged(changes=("unroll: 4 → 8",)))
        app.tick()
        await press(app, pilot, "7", "z", "F")  # only trouble
        assert told in text_of(app)
        assert "unroll: 4" not in text_of(app)

    play(app, script)


def test_an_undo_names_the_move_and_an_injected_candidate_is_marked(sample: Sample) -> None:
    move = {"action": "split_k", "arguments": [["parts", 2]]}
    sample.put(ev.RequestTaken(id="r-1", who="bob", what="inject", body={"moves": [move]}))
    sample.put(ev.RequestUndone(id="r-2", who="bob", undoes="r-1"))
    assert "undo by bob: split_k(2)" in text_after(app_of(sample), ["7", "z"])
    by_hand = Proposal(sample.incumbent, (Move("split_k", (("parts", 2),)),), "", "person", "bob", request="r-3")
    sample._plan(by_hand, sample.schedule_of_best(), None)
    board = text_after(app_of(sample), ["4", "z", "o"]).splitlines()
    assert [line for line in board if f"#{sample.number} " in line and "▲ bob" in line]
    assert sum("▲" in line for line in board) == 1


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


# -- the board ---------------------------------------------------------------------------------------------


def test_the_latest_candidate_is_on_the_board_while_it_is_followed(sample: Sample) -> None:
    app = app_of(sample)
    board = next(pane for pane in load_panes() if pane.pane_name == "board")

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        def rows() -> list[str]:
            return [line for line in text_of(app).splitlines() if re.match(r" +\d* +#\d+ ", line)]

        await press(app, pilot, str(board.number), "z", "end", "escape")
        latest = app.view().selected
        assert app.view().follows
        first, *_, last = rows()
        assert f"#{app.bridge.fold.history.incumbent} " in first
        assert f"#{latest} " in last
        assert "latest" in last
        await pilot.click(f"#pane-{board.pane_name}", offset=(5, len(rows()) + 1))
        assert app.chosen == latest

    play(app, script, (120, 14))


def test_the_board_shows_what_it_is_ordered_by_and_no_empty_rank(sample: Sample) -> None:
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "4")
        assert "speed-up" in text_of(app)  # in a narrow pane too
        await press(app, pilot, "z")
        assert re.search(r"^ +rank +no", text_of(app), re.M)
        await press(app, pilot, "o")
        assert "rank" not in text_of(app)

    play(app, script)


def test_what_is_in_flight_is_not_yet_measured_and_the_slower_ones_can_be_filtered(sample: Sample) -> None:
    by_hand = Proposal(sample.incumbent, (Move("split_k", (("parts", 2),)),), "", "finding", "bandit")
    sample._plan(by_hand, sample.schedule_of_best(), None)
    sample._measure(1234.0, 0.0, sample.incumbent)
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "4", "z", "f")
        assert "only measured" in text_of(app)
        assert f"#{sample.number} " not in "".join(text_of(app).splitlines()[4:])
        await press(app, pilot, "f", "f")
        rows = [line for line in text_of(app).splitlines() if re.match(r" +#\d+ |.* #\d+ .*→", line)]
        assert "only slower" in text_of(app)
        assert rows
        assert all("slower" in line for line in rows if "→" in line)

    play(app, script)


# -- figures and words -------------------------------------------------------------------------------------


def test_a_blank_stands_before_the_history_of_a_reading(sample: Sample) -> None:
    app = app_of(sample)
    app.bridge.poll()
    app.bridge.fold.trail.drift = [0.1, math.log(2.751)]
    assert re.search(r"drift +\+175\.1 % of the best +[▁▂▃▄▅▆▇█]", text_after(app, ["5", "z"]))


def test_export_of_simulated_figures_names_the_command_that_does_it(tmp_path: Path) -> None:
    sample = Sample(tmp_path / "first", device=msgspec.structs.replace(DEVICE, kind="simulated"))
    sample.run(4)
    said = text_after(app_of(sample), ["e"], size=(200, 40)).splitlines()[-1]
    assert "cake-tui export first --allow-simulated" in said


def test_what_is_null_is_left_out_where_people_read(sample: Sample) -> None:
    entries = sections.entries({"local_accesses": None, "vector_share": 0.9}, "", 60)
    assert ["".join(text for text, _ in line).split() for line in entries] == [["vector_share", "0.9"]]
    (_, seen) = sections.findings([{"label": "x", "evidence": {"sm_busy_pct": None, "share": 0.5}}], 60)[:2]
    assert "".join(text for text, _ in seen).split() == ["share", "0.5"]


# -- hints -------------------------------------------------------------------------------------------------


def test_the_footer_names_only_what_the_keys_do_now(sample: Sample) -> None:
    sample.put(ev.RequestTaken(id="x", who="sam", what="pause"))
    assert "p resume" in text_after(app_of(sample)).splitlines()[-1]
    gone = text_after(app_of(sample, alive=False), size=(200, 30)).splitlines()[-1]
    assert gone.startswith(" q detach")
    assert not re.search(r"resume|inject|undo|mark|stop", gone)
    assert "export" in gone


def test_an_empty_board_names_the_keys_that_fill_it(sample: Sample) -> None:
    filtered = text_after(app_of(sample), ["4", "z", "F", "slash", *"zzz", "enter"])
    assert 'no candidate has the words "zzz"; esc ends the search' in filtered
    assert "no candidate is injected; f and F choose another filter" in filtered


def test_a_narrow_help_gives_every_id_whole(sample: Sample) -> None:
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "question_mark")
        seen = text_of(app)
        for _ in range(40):
            await press(app, pilot, "pagedown")
            seen += text_of(app)
        assert [key.id for key in KEYS if key.where != "replay" and key.id not in seen] == []

    play(app, script, (48, 20))
