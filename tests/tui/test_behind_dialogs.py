"""While a dialog is open the run goes on: what it covers is not sent, and the screen is current when it closes."""

from __future__ import annotations

import os
import re

from textual.pilot import Pilot

from cake_tui.tui.app import CakeApp
from tests.tui.conftest import app_of
from tests.tui.picture import text_of
from tests.tui.pilot import play, press, settle
from tests.tui.pty_terminal import PtyTerminal
from tests.tui.sample import Sample


def test_what_a_dialog_covers_is_not_sent_and_a_search_sends_only_what_changed(locked: Sample) -> None:
    with PtyTerminal("attach", "first", "--sessions", str(locked.folder.parent)) as terminal:
        terminal.wait_for("best #")
        terminal.settle(quiet=0.5)
        os.write(terminal.master, b"\r")
        terminal.wait_for("why it was tried")
        terminal.settle(quiet=0.5)
        locked.run(3)
        assert terminal.read(2.0) == b""
        os.write(terminal.master, b"\x1b")
        terminal.wait_for(f"#{locked.number - 1}")
        for key in b"4o/a":
            os.write(terminal.master, bytes([key]))
            terminal.read(0.2)
        terminal.read(1.2)
        locked.run(1)
        assert 0 < len(re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", terminal.read(2.0)).decode()) < 120 * 40 / 2
        assert f"#{locked.number - 1}" in terminal.text()


def test_the_state_stays_current_above_a_small_dialog(sample: Sample) -> None:
    app = app_of(sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "m")
        sample.run(4)
        app.tick()
        await settle(app, pilot)
        candidates = app.bridge.fold.history.effective
        assert f"{candidates} of 600 candidates" in text_of(app).splitlines()[0]
        await press(app, pilot, "escape")
        assert f"#{sample.number - 1}" in text_of(app)

    play(app, script)
