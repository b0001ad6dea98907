"""Panes hidden and moved: kept for the next session, brought back by their number, whatever the file says."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot

from cake_tui.tui.app import CakeApp
from cake_tui.tui.arrangement import FIRST, Arrangement
from cake_tui.tui.tiles import regions, rows_for
from tests.tui.conftest import app_of
from tests.tui.picture import text_of
from tests.tui.pilot import play, press, text_after
from tests.tui.sample import Sample

NAMES = sorted(FIRST)


def test_a_hidden_pane_stays_hidden_in_the_next_session_until_its_number_is_pressed(
    finished_sample: Sample, tmp_path: Path
) -> None:
    text = text_after(app_of(finished_sample, settings=tmp_path), ["5", "H"])
    assert "5 clocks and noise" not in text
    assert "clocks and noise is hidden; 5 brings it back" in text
    app = app_of(finished_sample, settings=tmp_path)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        assert "5 clocks and noise" not in text_of(app)
        await press(app, pilot, *["tab"] * 8)
        assert "5 clocks and noise" not in text_of(app)
        await press(app, pilot, "5")
        assert "━ 5 clocks and noise" in text_of(app)

    play(app, script)
    assert "5 clocks and noise" in text_after(app_of(finished_sample, settings=tmp_path))


def test_a_pane_moves_and_the_order_is_kept(finished_sample: Sample, tmp_path: Path) -> None:
    moved = text_after(app_of(finished_sample, settings=tmp_path), ["4", "less_than_sign", "less_than_sign"])
    again = text_after(app_of(finished_sample, settings=tmp_path))
    for text in (moved, again):
        assert text.splitlines()[3].startswith(("━ 4 board", "─ 4 board"))
        assert "3 history" in text.splitlines()[3]
    at_the_end = text_after(app_of(finished_sample, settings=tmp_path), ["4", "less_than_sign"])
    assert at_the_end.splitlines()[3].startswith("━ 4 board")


def test_the_last_pane_cannot_be_hidden(finished_sample: Sample) -> None:
    assert "the last pane stays" in text_after(app_of(finished_sample), ["H"] * 7, (80, 24))


def test_hidden_panes_leave_their_room_to_the_others() -> None:
    for count in range(1, len(FIRST) + 1):
        shown = FIRST[:count]
        for width, height in ((120, 36), (80, 20), (200, 56)):
            placed = regions(rows_for(width, height, shown[0], shown[0], False, shown), width, height)
            assert sum(region.height for region in placed.values()) >= height
            assert max(region.right for region in placed.values()) == width
            assert max(region.bottom for region in placed.values()) == height


def test_whatever_the_file_says_every_pane_is_reached(tmp_path: Path) -> None:
    path = tmp_path / "panes.toml"
    for text, told in (
        ('order = ["log", "nothing", "log"]\nhidden = ["board"]\n', 'found "nothing", allowed'),
        ('hidden = ["best"]\ncolour = 1\n', "unknown key; allowed: order, hidden"),
        ("order = 3\n", "an array of texts out of"),
        ("\x00\xff", "NUL"),
        (f"hidden = {NAMES!r}\n", ""),
    ):
        path.write_text(text, encoding="latin-1")
        found = Arrangement(NAMES, path)
        assert sorted(found.order) == NAMES
        assert found.shown
        assert told in " ".join(found.mistakes)
        assert all("\n" not in line for line in found.mistakes)


def test_a_disk_that_takes_nothing_costs_no_key(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    found = Arrangement(NAMES, tmp_path / "file" / "panes.toml")
    assert found.hide("log")
    assert "log" not in found.shown
