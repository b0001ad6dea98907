"""A replay steps, plays at a speed, goes to a candidate, an event or a time, and marks what people did."""

from __future__ import annotations

import msgspec
import pytest
from textual.pilot import Pilot

from cake_tui.errors import UserError
from cake_tui.model import event as ev
from cake_tui.tui.app import CakeApp
from cake_tui.tui.bridge import Fold, Now
from cake_tui.tui.moments import Moments
from cake_tui.tui.replay import ReplayBridge
from tests.tui.picture import text_of
from tests.tui.pilot import play, press, text_after
from tests.tui.sample import Sample


def opened(sample: Sample) -> ReplayBridge:
    bridge = ReplayBridge(sample.folder, now=sample.now)
    bridge.poll()
    return bridge


def ended(bridge: ReplayBridge) -> int:
    return max(row.number for row in bridge.fold.history.rows if row.outcome is not None)


@pytest.mark.parametrize("text", ["#17", "17", " #17 "])
def test_going_to_a_candidate_shows_its_end(finished_sample: Sample, text: str) -> None:
    bridge = opened(finished_sample)
    bridge.go(text)
    assert ended(bridge) == 17
    assert isinstance(bridge.last_event(), ev.CandidateEnded)


def test_going_to_an_event_a_running_time_and_a_clock(finished_sample: Sample) -> None:
    bridge = opened(finished_sample)
    whole = bridge.fold.history.elapsed_s
    bridge.go("event 120")
    assert bridge.cursor == 120
    bridge.go("20s")
    assert bridge.fold.history.elapsed_s == pytest.approx(20.0, abs=2.0)
    assert bridge.fold.history.elapsed_s >= 20.0
    bridge.go("0h0m20")
    assert bridge.fold.history.elapsed_s == pytest.approx(20.0, abs=2.0)
    bridge.go("09:00:30")
    assert "09:00:30" <= bridge.fold.history.last_t[11:19] <= "09:00:32"
    bridge.go("9:00")
    assert bridge.cursor == 1
    bridge.go("end")
    assert bridge.fold.history.elapsed_s == whole
    bridge.go("start")
    assert bridge.cursor == 0


@pytest.mark.parametrize("text", ["#9999", "event 99999999", "99h", "25:00", "23:59:59", "yesterday", "-3", "#", "1e9"])
def test_a_place_that_is_not_there_is_refused_with_what_is(finished_sample: Sample, text: str) -> None:
    bridge = opened(finished_sample)
    cursor = bridge.cursor
    with pytest.raises(UserError, match="not in this record; it has #0 to #"):
        bridge.go(text)
    assert bridge.cursor == cursor


def test_a_clock_past_midnight_is_the_next_day() -> None:
    moments = Moments()
    stamps = ("2026-11-29T23:50:00Z", "2026-11-30T00:10:00Z", "2026-11-30T23:40:00Z")
    for number, stamp in enumerate(stamps):
        moments.add(ev.Noticed(level="info", text="", t=stamp, mono=float(number), boot="b"), None)
    assert [moments.find(text) for text in ("23:50", "00:10", "23:45", "12:00")] == [1, 2, None, 3]


def test_what_people_did_is_stepped_through_and_marked(sample: Sample) -> None:
    sample.put(ev.RequestTaken(id="m", who="bob", what="mark", body={"note": "look here"}))
    sample.run(8)
    app = CakeApp(opened(sample), you="sam")

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        assert text_of(app).splitlines()[3].count("▲") == 3  # two in the record, one in the legend
        await press(app, pilot, "left_curly_bracket")
        assert "▲" in text_of(app).splitlines()[-1]
        assert "look here" in text_of(app).splitlines()[-1]
        await press(app, pilot, "left_curly_bracket")
        assert "apply_register_block(8, 2)" in text_of(app).splitlines()[-1]
        await press(app, pilot, "left_curly_bracket")
        assert "nobody did anything before this" in text_of(app)
        await press(app, pilot, "right_curly_bracket", "right_curly_bracket")
        assert "nobody did anything after this" in text_of(app)

    play(app, script)


def test_keys_ask_where_to_and_say_what_is_not_there(sample: Sample) -> None:
    text = text_after(CakeApp(opened(sample), you="sam"), ["at", *"#12", "enter"])
    assert "REPLAY" in text
    assert "#12 " in text
    assert "#13 " not in text
    assert "it has #0 to #" in text_after(CakeApp(opened(sample), you="sam"), ["at", *"#x[/]", "enter"])


def test_playing_folds_as_much_as_the_speed_says(sample: Sample) -> None:
    clock = [100.0]
    bridge = ReplayBridge(sample.folder, now=lambda: Now(sample.began.wall, clock[0], "here"))
    bridge.poll()
    total, whole = bridge.cursor, bridge.moments.played_s(bridge.cursor)
    assert not bridge.poll()  # it stands still until it is told to play
    bridge.play(True)
    assert bridge.cursor == 0
    assert bridge.speed == 10
    clock[0] += 1.0
    assert bridge.poll()
    assert bridge.moments.played_s(bridge.cursor) == pytest.approx(10.0, abs=0.5)
    fresh = Fold.empty()
    for index in range(bridge.cursor):
        event = bridge.reader.event(index)
        assert event is not None
        fresh.apply(event)
    assert msgspec.json.encode(bridge.fold.history) == msgspec.json.encode(fresh.history)
    bridge.faster(1)
    clock[0] += 0.5
    bridge.poll()
    assert bridge.moments.played_s(bridge.cursor) == pytest.approx(25.0, abs=0.5)
    bridge.play(False)
    clock[0] += 50
    assert not bridge.poll()
    bridge.play(True)
    clock[0] += whole
    assert bridge.poll()
    assert bridge.cursor == total
    assert not bridge.playing


def test_a_night_without_an_engine_plays_in_a_minute(sample: Sample) -> None:
    sample.clock += 8 * 3600
    sample.run(2)
    bridge = opened(sample)
    assert bridge.moments.played_s(bridge.cursor) < 400


def test_readings_are_those_of_the_moment(sample: Sample) -> None:
    bridge = opened(sample)
    newest = bridge.telemetry.mono
    bridge.go("10s")
    at = bridge.fold.history.last_mono
    assert bridge.telemetry.mono <= at
    assert bridge.telemetry.mono < newest
    bridge.go("end")
    assert bridge.telemetry.mono == pytest.approx(newest, abs=2.0)


def test_a_record_that_grows_while_it_is_replayed(sample: Sample) -> None:
    bridge = opened(sample)
    before = bridge.cursor
    sample.run(4)
    bridge.poll()
    assert bridge.cursor == before
    bridge.go(f"#{sample.number - 1}")
    assert ended(bridge) == sample.number - 1


def test_going_to_a_candidate_chooses_it_whatever_its_ending(sample: Sample) -> None:
    bridge = opened(sample)
    app = CakeApp(bridge, you="sam")
    endings = {row.outcome: row.number for row in bridge.fold.history.rows if row.outcome is not None}
    assert {"Screened", "Rejected", "Repeated", "Measured"} <= set(endings)

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        for number in endings.values():
            await press(app, pilot, "at", *f"#{number}", "enter")
            assert f"#{number} · chosen" in text_of(app)
            await press(app, pilot, "enter")
            assert f"candidate {number} of first" in text_of(app)
            await press(app, pilot, "escape")
        await press(app, pilot, "left_square_bracket")  # a step is about the candidate that ended there
        event = bridge.last_event()
        assert isinstance(event, ev.CandidateEnded)
        assert f"#{event.candidate} · chosen" in text_of(app)
        await press(app, pilot, "at", *"start", "enter")
        assert "no candidate has ended yet" in text_of(app)

    play(app, script)
