"""The plot of the throughput: axes that people can read, zoom, time, and whatever numbers a session holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual.pilot import Pilot

from cake_tui.model.move import Proposal
from cake_tui.model.neighbourhood import block_shape, explored
from cake_tui.model.row import Row
from cake_tui.model.schedule import Schedule
from cake_tui.tui.app import CakeApp
from cake_tui.tui.panes.history import History
from cake_tui.tui.plot import SECONDS, STEPS, Columns, by_candidate, by_time, nice_above, nice_below
from tests.tui.conftest import app_of
from tests.tui.picture import rows_of, text_of
from tests.tui.pilot import play, press, text_after
from tests.tui.sample import Sample


def axis_of(text: str) -> list[str]:
    """Labels at the left of a zoomed history, from the top down."""
    return [match[1].strip() for line in text.splitlines() if (match := re.match(r"^(.{7})┤", line))]


def under(text: str) -> str:
    """The line below the plot."""
    lines = text.splitlines()
    return lines[next(index for index, line in enumerate(lines) if line.startswith(" failed")) + 2]


def test_axes_are_readable_in_every_quantity(finished_sample: Sample) -> None:
    app = app_of(finished_sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "z")
        assert axis_of(text_of(app)) == ["200", "150", "100", "50", "0"]
        await press(app, pilot, "t")
        assert all(re.fullmatch(r"\d[\d.]* (us|ms|s)|0", label) for label in axis_of(text_of(app)))
        await press(app, pilot, "l")
        labels = axis_of(text_of(app))
        assert labels[-1].endswith("ms")
        assert "log" in text_of(app)
        assert not any("e" in label for label in labels)
        await press(app, pilot, "x")
        assert re.fullmatch(r" +0 s +(\d+ (s|m)( \d+ s)? *)+", under(text_of(app)))

    play(app, script)


def test_the_last_part_is_fitted_and_can_be_panned(finished_sample: Sample) -> None:
    app = app_of(finished_sample)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "z")
        whole = under(text_of(app)).split()
        await press(app, pilot, "plus", "plus")
        text = text_of(app)
        assert "last 1/4" in text
        low, high = axis_of(text)[-1], axis_of(text)[0]
        assert 0 < float(low) < float(high)
        assert int(under(text).split()[0]) > 100
        await press(app, pilot, "left", "left", "left", "left")
        assert "· 1/4" in text_of(app)
        assert 50 <= int(under(text_of(app)).split()[0]) < 100
        await press(app, pilot, *["left"] * 40)
        assert under(text_of(app)).split()[0] == "0"
        await press(app, pilot, "minus", "minus")
        assert under(text_of(app)).split() == whole

    play(app, script)


def test_odd_sessions_and_sizes_draw_in_every_mode(odd: CakeApp) -> None:
    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        await press(app, pilot, "z")
        pane = app.query_one(History)
        modes = (
            pane.action_quantity, pane.action_scale, pane.action_quantity, lambda: pane.action_zoom(2),
            pane.action_axis, pane.action_scale, pane.action_quantity, lambda: pane.action_pan(3),
            lambda: pane.action_zoom(-2),
        )  # fmt: skip
        for size in ((120, 40), (40, 12), (12, 6)):
            await pilot.resize_terminal(*size)
            for change in (*modes, pane.action_axis):
                change()
                await pilot.pause()
                assert len(rows_of(app)) == size[1]

    play(odd, script)


@pytest.fixture(params=["one", "same", "huge", "no time"])
def odd(request: pytest.FixtureRequest, tmp_path: Path) -> CakeApp:
    """Sessions with one candidate, with equal times, with absurd ones, and with none that has a time."""
    sample = Sample(tmp_path / "s", goal="1e-3 us")
    if request.param == "no time":
        return app_of(sample)
    sample.start()
    if request.param != "one":
        sample._timed = _times_of(sample, 5.0 if request.param == "same" else 1e300)  # type: ignore[method-assign]
        sample.run(9)
    return app_of(sample)


def _times_of(sample: Sample, time_us: float) -> object:
    def timed(schedule: Schedule) -> int:
        from cake_tui.model.outcome import Measured

        sample._measure(time_us, -0.5, sample.incumbent)
        sample._end(Measured(step="gate", verdict="slower", avg_us=time_us), schedule, time_us)
        return 0

    return timed


# -- geometry ----------------------------------------------------------------------------------------------


def test_old_columns_stay_where_they_are_as_a_run_grows() -> None:
    for steps in (STEPS, SECONDS):
        for width in (8, 50, 180):
            columns = None
            for end in range(1, 3000, 7):
                now = Columns.over(0, end, width, steps)
                assert now.column(end - 1) < width
                if columns is not None and now.per == columns.per:
                    assert [now.column(at) for at in range(end)] == [columns.column(at) for at in range(end)]
                columns = now


def test_round_numbers_enclose_a_value() -> None:
    for value in (1e-9, 0.013, 1.0, 1.2, 7.99, 99, 100, 12345, 8e11):
        assert nice_below(value) <= value * (1 + 1e-9)
        assert nice_above(value) >= value * (1 - 1e-9)
        assert nice_above(value) / nice_below(value) <= 2
    assert nice_below(0) == nice_below(-1) == nice_below(float("nan")) == 0


def test_labels_stand_at_their_own_columns_and_never_touch() -> None:
    for count in (1, 30, 200, 5000, 200_000):
        columns = Columns.over(0, count, 80)
        labels = by_candidate(columns)
        for match in re.finditer(r"[\d,]+", labels):
            assert columns.column(int(match[0].replace(",", ""))) == match.start()
    hours = by_time(Columns.over(0, 24 * 3600, 80, SECONDS))
    assert hours.split("  ")[0] == "0 s"
    assert "12 h" in hours
    assert "m" not in hours


# -- what was explored -------------------------------------------------------------------------------------


def row(number: int, base: int, x: int, y: int, time_us: float | None = 1.0, structure: str = "tiled") -> Row:
    """A row of a structure with this block."""
    schedule = Schedule.of(structure, {"threads_x": x, "threads_y": y})
    return Row(number, 1, Proposal(base, (), "", "start", ""), schedule=schedule, time_us=time_us)


def test_explored_are_other_blocks_of_the_same_structure_tried_from_the_best_later() -> None:
    best = row(5, 0, 4, 4)
    rows = [
        row(3, 0, 1, 1), best, row(6, 5, 8, 4), row(7, 5, 4, 4), row(8, 5, 2, 8), row(9, 2, 16, 16),
        row(10, 5, 32, 1, time_us=None), row(11, 5, 64, 1, structure="packed"), row(12, 5, 8, 4),
    ]  # fmt: skip
    assert explored(rows, best) == [(2, 8), (8, 4)]
    assert block_shape(None) is None
    assert block_shape(Schedule.of("naive")) is None


def test_the_actions_pane_names_what_was_explored(sample: Sample) -> None:
    from cake_tui.model.move import Move
    from cake_tui.model.outcome import Measured

    for x, y in ((2, 8), (16, 1)):
        schedule = sample.schedule_of_best().with_knobs({"threads_x": x, "threads_y": y})
        proposal = Proposal(
            sample.incumbent, (Move("change_block_config", (("x", x), ("y", y))),), "", "weight", "bandit"
        )
        sample._plan(proposal, schedule, None)
        sample._measure(9e4, -3.0, sample.incumbent)
        sample._end(Measured(step="measure", verdict="slower", avg_us=9e4), schedule, 9e4)
    text = text_after(app_of(sample), ["6", "z"], (100, 60))
    assert f"around #{sample.incumbent}: 2×8, 16×1" in text
