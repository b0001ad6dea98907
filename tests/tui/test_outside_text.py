"""Meaning needs neither colour nor Unicode; what hostile text does is shown by test_hostile_fields."""

from __future__ import annotations

from tests.tui.conftest import app_of
from tests.tui.pilot import text_after
from tests.tui.sample import Sample


def test_meaning_survives_without_colour_and_in_ascii(finished_sample: Sample) -> None:
    text = text_after(app_of(finished_sample, ascii=True))
    assert text.isascii()
    for words in ("RUNNING", "@ accepted", ". slower", "baseline", "best #", "S9 x"):
        assert words in text, words
