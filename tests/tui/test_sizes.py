"""Every size from one cell up, in every screen: nothing raises, and the rows on screen are as wide as the terminal."""

from __future__ import annotations

import random

import pytest
from textual.pilot import Pilot

from cake_tui.tui.app import CakeApp
from cake_tui.tui.replay import ReplayBridge
from tests.tui.conftest import app_of
from tests.tui.picture import rows_of, text_of
from tests.tui.pilot import play, press, settle
from tests.tui.sample import Sample

OPENED = {
    "panes": (),
    "zoomed": ("4", "z"),
    "inject": ("i", *"apply_unroll("),
    "mark": ("m",),
    "help": ("question_mark",),
    "exact": ("J",),
    "details": ("enter",),
    "commands": ("ctrl+p",),
}
EDGES = ((1, 1), (300, 100), (1, 100), (300, 1), (40, 12), (2, 2), (71, 17), (72, 18), (103, 27), (104, 28), (5, 5))


@pytest.mark.parametrize("opened", OPENED)
def test_a_storm_of_sizes(finished_sample: Sample, opened: str, soak_share: float) -> None:
    """Pitfall 11."""
    rng = random.Random(opened)
    count = max(4, round(160 * soak_share))
    sizes = [*EDGES, *((rng.randint(1, 300), rng.randint(1, 100)) for _ in range(count))]
    if soak_share < 1:
        sizes = [sizes[0], *rng.sample(sizes[1:], 9)]
    app = app_of(finished_sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, *OPENED[opened])
        for width, height in sizes:
            await pilot.resize_terminal(width, height)
            await settle(app, pilot)
            assert (len(rows_of(app)), app.size) == (height, (width, height))
        await pilot.resize_terminal(120, 40)
        await press(app, pilot, "escape")
        await settle(app, pilot)
        assert "RUNNING" in text_of(app)

    play(app, script)


@pytest.mark.parametrize("size", [(1, 1), (40, 12), (80, 16), (300, 100)], ids=str)
def test_a_replay_of_every_size(finished_sample: Sample, size: tuple[int, int]) -> None:
    app = CakeApp(ReplayBridge(finished_sample.folder, now=finished_sample.now), you="sam")

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        for key in ("left_square_bracket", "left_curly_bracket", "space", "at", "escape"):
            await press(app, pilot, key)
            rows_of(app)

    play(app, script, size)
