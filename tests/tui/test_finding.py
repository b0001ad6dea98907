"""The key / in each pane: filters of board, log and actions, searches of source and feedback; orders of the board."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual.pilot import Pilot

from cake_tui.tui.app import CakeApp
from cake_tui.tui.panes import log
from cake_tui.tui.panes.board import FILTERS
from cake_tui.tui.replay import ReplayBridge
from tests.tui.conftest import app_of
from tests.tui.picture import rows_of, text_of
from tests.tui.pilot import play, press, settle, text_after
from tests.tui.sample import Sample


def numbers(text: str) -> list[int]:
    """Candidates of a zoomed board, from the top down."""
    rows = [line for line in text.splitlines() if re.match(r" *\d* +#\d+  ", line)]
    return [int(re.search(r"#(\d+)", line)[1]) for line in rows]  # type: ignore[index]


def test_the_board_is_filtered_by_words_while_they_are_typed(finished_sample: Sample) -> None:
    app = app_of(finished_sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "4", "z")
        everything = numbers(text_of(app))
        await press(app, pilot, "slash", *"unroll(8) SLOWER")
        assert "/ filter by words" in text_of(app).splitlines()[-1]
        rows = app.bridge.fold.history.rows
        wanted = [r.number for r in rows if "apply_unroll(8)" in r.proposal.text and r.verdict == "slower"]
        assert sorted(numbers(text_of(app))) == wanted
        assert len(wanted) >= 3
        await press(app, pilot, "enter")
        assert "/unroll(8) SLOWER · by rank" in text_of(app)
        await press(app, pilot, "down", "down")
        assert app.chosen in wanted
        await press(app, pilot, "slash", *"\\[x", "enter")
        assert "no candidate has the words" in text_of(app)
        await press(app, pilot, "escape")
        assert app.chosen in wanted  # chosen by hand, it stays
        await press(app, pilot, "escape")
        assert numbers(text_of(app)) == everything

    play(app, script)


def test_what_enter_opens_is_in_the_filtered_list(finished_sample: Sample) -> None:
    app = app_of(finished_sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "4", *["f"] * FILTERS.index("screened"))
        rows = app.bridge.fold.history.rows
        assert "only screened" in text_of(app)
        assert app.chosen in [row.number for row in rows if row.outcome == "Screened"]
        await press(app, pilot, "F")
        assert "only rejected" in text_of(app)
        assert app.chosen in [row.number for row in rows if row.outcome == "Rejected"]
        await press(app, pilot, "enter")
        assert re.search(rf"\b{app.chosen}\b", "".join(text_of(app).splitlines()[:4]))

    play(app, script)


@pytest.mark.parametrize(
    "keys", [("slash", *"rejected", "enter"), ("f",) * FILTERS.index("rejected")], ids=["words", "f"]
)
def test_a_filter_chooses_within_itself_and_the_latest_is_followed_after_it(
    finished_sample: Sample, keys: tuple[str, ...]
) -> None:
    app = app_of(finished_sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "4", *keys)
        rejected = [row.number for row in app.bridge.fold.history.rows if row.outcome == "Rejected"]
        assert app.chosen in rejected
        await press(app, pilot, "enter")
        assert f"candidate {app.chosen} of" in text_of(app)
        await press(app, pilot, "escape", *(["escape"] if keys[0] == "slash" else ["F"] * len(keys)))
        assert app.chosen is None

    play(app, script)


def test_esc_while_typing_ends_the_filter_and_no_typed_key_acts(sample: Sample) -> None:
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        before = len(list((sample.folder / "inbox").iterdir()))
        await press(app, pilot, "4", "slash", *"pieQw 7", "escape")
        assert "/pieQw" not in text_of(app)
        assert len(list((sample.folder / "inbox").iterdir())) == before
        assert "━ 4 board" in text_of(app)
        await press(app, pilot, "5", "slash")
        assert "nothing to search in this pane; it works in: best kernel, feedback, board, actions, log" in text_of(app)

    play(app, script)


def test_a_filter_holds_while_candidates_come(sample: Sample) -> None:
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "4", "z", "slash", *"slower", "enter", "o")
        before = numbers(text_of(app))
        sample.run(24)
        app.tick()
        await settle(app, pilot)
        rows = app.bridge.fold.history.rows
        wanted = [row.number for row in reversed(rows) if row.verdict == "slower" and row.number]
        seen = numbers(text_of(app))
        assert seen == wanted[: len(seen)]
        assert seen[0] > before[0]

    play(app, script)


def test_the_board_has_five_orders(finished_sample: Sample) -> None:
    app = app_of(finished_sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "4", "z")
        rows = app.bridge.fold.history.rows
        assert numbers(text_of(app))[0] == app.bridge.fold.history.incumbent
        await press(app, pilot, "o")
        newest = numbers(text_of(app))
        assert newest == list(range(len(rows) - 1, len(rows) - 1 - len(newest), -1))
        for word, value in (
            ("by time", lambda row: row.time_us),
            ("by gain", lambda row: None if row.gain is None or not row.number else -row.gain),
            ("by error", lambda row: row.max_abs_err),
        ):
            await press(app, pilot, "o")
            assert word in text_of(app)
            known = sorted(value(row) for row in rows if value(row) is not None)
            seen = [value(rows[number]) for number in numbers(text_of(app))[:-1]]  # below them stands the latest
            assert seen == known[: len(seen)]
        await press(app, pilot, "O")
        assert "by gain" in text_of(app)

    play(app, script)


def test_a_search_goes_from_place_to_place_and_round(finished_sample: Sample) -> None:
    app = app_of(finished_sample)
    source = (finished_sample.folder / "best" / "kernel.c").read_text(encoding="utf-8").splitlines()
    wanted = [index + 1 for index, line in enumerate(source) if "panel_a" in line]
    assert len(wanted) >= 2

    def first(text: str) -> int:
        return int(text.splitlines()[5].split()[0])

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "1", "z", "slash", *"PANEL_A", "enter")
        assert f"/PANEL_A {len(wanted)} found · " in text_of(app)
        assert re.search(rf"^ *{wanted[0]} .*panel_a", text_of(app), re.MULTILINE)
        marked = [piece.text for row in rows_of(app) for piece in row if piece.style and piece.style.reverse]
        assert marked.count("panel_a") >= 2
        tops = []
        for _ in range(len(wanted)):
            await press(app, pilot, "n")
            tops.append(first(text_of(app)))
        assert tops[-1] == min(tops), "after the last comes the first"
        await press(app, pilot, "N", "escape")
        assert "found" not in text_of(app)

    play(app, script, (100, 12))


def test_feedback_is_searched_and_folded_by_section(finished_sample: Sample) -> None:
    app = app_of(finished_sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "2", "z", "slash", *"throughput_tflops", "enter")
        assert "1 found" in text_of(app)
        await press(app, pilot, "escape", "right", "right", "f")
        assert "▸ perf" in text_of(app)
        assert "throughput_tflops" not in text_of(app)
        assert "memory_throughput_pct" in text_of(app)
        await press(app, pilot, "F")
        assert "throughput_tflops" in text_of(app), "all are unfolded first"
        await press(app, pilot, "F")
        assert "memory_throughput_pct" not in text_of(app)

    play(app, script)


def test_the_log_is_filtered_by_words_in_slices(sample: Sample, tmp_path: Path) -> None:
    app = app_of(sample)
    log.SEARCHED, kept = 50, log.SEARCHED

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "7", "z", "slash", *"anna inject", "enter")
        for _ in range(20):
            await pilot.pause()
        text = text_of(app)
        assert "searching" not in text
        assert "inject by anna: apply_register_block(8, 2)" in text
        assert sum("anna" in line for line in text.splitlines()[4:-1]) == 2  # the head and the event

    try:
        play(app, script)
    finally:
        log.SEARCHED = kept


def test_actions_are_filtered_by_name_and_say_their_last_result(finished_sample: Sample) -> None:
    app = app_of(finished_sample)
    text = text_after(app, ["6", "z", "slash", *"unroll", "enter"])
    lines = [line for line in text.splitlines() if line.startswith((" apply_", " split"))]
    assert len(lines) == 1
    last = [row for row in app.bridge.fold.history.rows if row.outcome and "unroll" in row.proposal.text][-1]
    assert f"#{last.number}" in lines[0]
    whole = text_after(app_of(finished_sample), ["6", "z"])
    assert "1. apply_register_block(8, 2)  by anna at 09:01:" in whole
    assert "last" in whole


def test_board_and_plot_show_the_same_whether_they_were_followed_or_drawn_anew(sample: Sample) -> None:
    """Panes add only what is new; a viewer that comes later draws all of it at once."""
    keys = ("4", "z", "o", "o", "z")
    followed: list[str] = []

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, *keys)
        for _ in range(6):
            sample.run(9)
            app.tick()
            await settle(app, pilot)
        followed.append(text_of(app))

    play(app_of(sample), script)
    assert followed == [text_after(app_of(sample), keys)]


def test_a_replay_that_goes_back_shows_only_what_there_was(finished_sample: Sample) -> None:
    bridge = ReplayBridge(finished_sample.folder, now=finished_sample.now)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "4", "z", "o")
        for cursor in (0, 40, 12, 0, 300, len(bridge.reader)):
            bridge.seek(cursor)
            app.repaint()
            await settle(app, pilot)
            rows = bridge.fold.history.rows
            assert numbers(text_of(app)) == [row.number for row in reversed(rows)][: len(numbers(text_of(app)))]
            assert bool(numbers(text_of(app))) == bool(rows)

    play(CakeApp(bridge, you="sam"), script)
