"""Meaning needs neither colour nor Unicode, in panes and dialogs of any size."""

from __future__ import annotations

from textual.pilot import Pilot

from cake_tui.tui.app import CakeApp
from tests.tui.conftest import app_of
from tests.tui.picture import rows_of, text_of
from tests.tui.pilot import play, press, settle, text_after
from tests.tui.sample import Sample

DIALOGS = (
    ("enter",), ("c", "4", "down", "c"), ("a",), ("question_mark",), ("colon",), ("J",), ("i",), ("Q",), ("m",),
    ("4", "slash", "x"),
)  # fmt: skip


def test_meaning_survives_without_colour_and_in_ascii(finished_sample: Sample) -> None:
    text = text_after(app_of(finished_sample, ascii=True))
    assert text.isascii()
    for words in ("RUNNING", "@ accepted", ". slower", "baseline", "best #", "S9 x"):
        assert words in text, words


def test_every_dialog_is_ascii_where_that_is_asked_for_and_fits_any_size(finished_sample: Sample) -> None:
    app = app_of(finished_sample, ascii=True)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        for keys in DIALOGS:
            await press(app, pilot, *keys)
            text = text_of(app)
            assert text.isascii(), keys
            if keys == DIALOGS[1]:
                assert "! " in text  # what differs keeps its sign
            for size in ((40, 12), (1, 1), (120, 40)):
                await pilot.resize_terminal(*size)
                await settle(app, pilot)
                assert len(rows_of(app)) == size[1]
            await press(app, pilot, "escape")

    play(app, script)
