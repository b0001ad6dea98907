"""Live, attached late and replayed are one fold; torn, cut and damaged journals are read as far as they go."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.pilot import Pilot

from cake_tui.model.history import History
from cake_tui.model.measure import Clock
from cake_tui.store.snapshot import fold as store_fold
from cake_tui.store.telemetry import Beat, encode
from cake_tui.tui.app import CakeApp
from cake_tui.tui.bridge import Bridge, Fold, Now, machine_now
from cake_tui.tui.headline import Headline
from cake_tui.tui.index import JournalIndex
from cake_tui.tui.replay import ReplayBridge
from cake_tui.tui.telemetry import Telemetry
from cake_tui.tui.views import status_of, view_of
from tests.tui.conftest import app_of
from tests.tui.long import long_session
from tests.tui.picture import text_of
from tests.tui.pilot import play
from tests.tui.sample import START, Sample


def encoded(history: History) -> bytes:
    return msgspec.json.encode(history)


def test_a_viewer_folds_what_the_store_folds(finished_sample: Sample) -> None:
    bridge = Bridge(finished_sample.folder)
    bridge.poll()
    assert encoded(bridge.fold.history) == encoded(store_fold(finished_sample.folder).history)
    assert bridge.fold.damaged == 0


def test_attached_late_is_as_attached_from_the_start(sample: Sample) -> None:
    early = Bridge(sample.folder)
    early.poll()
    for _ in range(5):
        sample.run(3)
        early.poll()
    late = Bridge(sample.folder)
    late.poll()
    assert encoded(early.fold.history) == encoded(late.fold.history)
    assert msgspec.json.encode(early.fold.trail) == msgspec.json.encode(late.fold.trail)


def test_a_replay_at_any_event_is_the_fold_of_the_events_before_it(finished_sample: Sample) -> None:
    replay = ReplayBridge(finished_sample.folder)
    replay.poll()
    total = len(replay.reader)
    for cursor in (total, 10, total // 2, 300, 299, total - 1, 0, total):
        replay.seek(cursor)
        fresh = Fold.empty()
        for index in range(cursor):
            event = replay.reader.event(index)
            assert event is not None
            fresh.apply(event)
        assert encoded(replay.fold.history) == encoded(fresh.history), cursor
        assert replay.cursor == cursor


def test_a_replay_steps_from_candidate_to_candidate(finished_sample: Sample) -> None:
    replay = ReplayBridge(finished_sample.folder)
    replay.poll()
    while replay.cursor:
        assert replay.step(-1)
    assert not replay.step(-1)
    for number in range(5):
        assert replay.step(1)
        ended = [row.number for row in replay.fold.history.rows if row.outcome is not None]
        assert ended == list(range(number + 1))
    assert replay.step(-1)
    assert replay.fold.history.rows[-1].number == 3


@settings(max_examples=30, deadline=None)
@given(cut=st.integers(1, 4000))
def test_a_journal_cut_anywhere_is_read_up_to_its_last_whole_line(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    Sample(folder).run(2)
    path = folder / "journal.jsonl"
    data = path.read_bytes()[:cut]
    path.write_bytes(data)
    reader = JournalIndex(path)
    assert len(list(reader.poll())) == data.count(b"\n")
    with path.open("ab") as file:  # the writer's next life: the tail ends, a good line follows
        file.write(
            b"\n" + msgspec.json.encode({"kind": "Noticed", "seq": 9999, "level": "info", "text": "hello"}) + b"\n"
        )
    assert [type(event).__name__ for event in reader.poll()][-1] == "Noticed"


def test_events_come_back_one_by_one_also_behind_unknown_and_damaged_lines(tmp_path: Path) -> None:
    sample = Sample(tmp_path / "s")
    path = sample.folder / "journal.jsonl"
    with path.open("ab") as file:
        file.write(b'{"kind":"FromTheFuture","seq":5,"x":1}\n\x00\x00garbage\n')
    sample.run(1)
    one, two = (path.read_bytes().splitlines()[index] for index in (0, 1))
    with path.open("ab") as file:
        file.write(one + two + b"\n")  # two records glued together
    sample.run(1)
    reader = JournalIndex(path)
    events = list(reader.poll())
    assert [reader.event(index) for index in range(len(reader))] == events
    assert reader.skipped == 2


def test_a_replaced_journal_is_folded_anew(sample: Sample) -> None:
    bridge = Bridge(sample.folder)
    bridge.poll()
    other = Sample(sample.folder.parent / "other", name="other")
    other.run(2)
    (sample.folder / "journal.jsonl").write_bytes((other.folder / "journal.jsonl").read_bytes())
    assert bridge.poll()
    assert bridge.fold.history.session is not None
    assert bridge.fold.history.session.name == "other"
    assert len(bridge.fold.history.rows) == 3


def test_events_that_contradict_the_record_are_counted_not_raised(sample: Sample) -> None:
    with (sample.folder / "journal.jsonl").open("ab") as file:
        file.write(b'{"kind":"RequestTaken","seq":99999,"id":"a","who":"b","what":"inject","body":{"moves":[[1]]}}\n')
    bridge = Bridge(sample.folder)
    bridge.poll()
    assert bridge.fold.damaged == 1
    assert view_of(bridge, you="sam", selected=None).damaged == 1


def test_a_missing_or_unreadable_journal_is_no_event(tmp_path: Path) -> None:
    bridge = Bridge(tmp_path)
    bridge.poll()
    assert not bridge.poll()
    (tmp_path / "journal.jsonl").mkdir()
    assert not bridge.poll()


# -- states --------------------------------------------------------------------------------------------


def word(sample: Sample, *, alive: bool = True, after: float = 1.0) -> str:
    bridge = Bridge(sample.folder, now=lambda: sample.now(after), alive=lambda _: alive)
    bridge.poll()
    return status_of(bridge, "sam").word


def test_each_state_has_its_own_words(sample: Sample) -> None:
    from cake_tui.model import event as ev

    assert word(sample) == "RUNNING"
    assert word(sample, alive=False) == "ENGINE GONE"
    assert word(sample, after=12.0) == "STALE"
    sample.put(ev.RequestTaken(id="1", who="sam", what="pause"))
    assert word(sample) == "PAUSED by you"
    sample.put(ev.RequestTaken(id="2", who="sam", what="resume"), ev.RequestTaken(id="3", who="anna", what="pause"))
    assert word(sample) == "PAUSED by anna"
    sample.put(ev.RequestTaken(id="4", who="anna", what="resume"), ev.PausedByGuard(guard="S4", reason="load 7.1"))
    assert word(sample) == "PAUSED: clocks"
    sample.put(ev.RequestTaken(id="5", who="anna", what="resume"), ev.PausedByGuard(guard="disk", reason="full"))
    assert word(sample) == "PAUSED: disk"
    sample.put(ev.RequestTaken(id="6", who="anna", what="resume"))
    sample.put(
        ev.RoundBegan(round=sample.round + 22, size=4, incumbent=0),
        ev.RoundEnded(round=sample.round + 22, accepted=0, summary={}),
    )
    sample.put(ev.Stalled(rounds=22))
    assert word(sample).startswith("STALLED ")
    assert word(sample).endswith(" rounds")
    sample.put(ev.EngineEnded(state="done", reason="600 of 600 candidates"))
    assert word(sample, alive=False) == "DONE: 600 of 600 candidates"
    replay = ReplayBridge(sample.folder)
    replay.poll()
    assert status_of(replay, "sam").word == "REPLAY"


def test_a_new_session_is_starting(tmp_path: Path) -> None:
    assert word(Sample(tmp_path / "s")) == "STARTING"


def test_ages_are_monotonic_on_one_boot_and_never_negative(sample: Sample) -> None:
    stepped = Now(START.replace(year=2020), sample.clock + 3.0, sample.began.boot)  # the wall clock went back
    bridge = Bridge(sample.folder, now=lambda: stepped, alive=lambda _: True)
    bridge.poll()
    assert bridge.event_age_s() == pytest.approx(3.0)
    elsewhere = Now(START.replace(year=2020), 5.0, "another boot")
    bridge.now = lambda: elsewhere
    assert bridge.event_age_s() == 0.0


# -- telemetry -----------------------------------------------------------------------------------------


def beat(mono: float, rate: float) -> str:
    return encode(Beat(t="2026-03-02T09:00:00Z", mono=mono, boot="b", clock=Clock(mono=mono, rate=rate)))


def test_telemetry_keeps_the_last_reading_and_says_since_when_one_is_missing(sample: Sample) -> None:
    telemetry = Telemetry(sample.folder / "telemetry.jsonl")
    assert telemetry.poll()
    assert telemetry.value("rate") is not None
    assert telemetry.value("temperature_c") is None
    assert telemetry.missing_since["temperature_c"]
    assert telemetry.why["temperature_c"] == "no sensor in this machine"
    sample.beat(1, temperature_c=61.5)
    assert telemetry.poll()
    assert telemetry.value("temperature_c") == 61.5
    assert "temperature_c" not in telemetry.missing_since
    assert not telemetry.poll()


@pytest.mark.parametrize(
    "line", ["", "null", "[]", "nonsense", '{"clock": 3}', '{"mono": "x", "clock": {"rate": "fast"}}', "\x00" * 50]
)
def test_telemetry_survives_any_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "telemetry.jsonl"
    path.write_text(line + "\n" + beat(5.0, 2.5) + "\n")
    telemetry = Telemetry(path)
    assert telemetry.poll()
    assert telemetry.value("rate") == 2.5


def test_telemetry_follows_a_rotation(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    path.write_text(beat(5.0, 2.5) + "\n")
    telemetry = Telemetry(path)
    telemetry.poll()
    path.rename(tmp_path / "telemetry.jsonl.1")
    assert not telemetry.poll()
    path.write_text(beat(6.0, 1.5) + "\n")
    assert telemetry.poll()
    assert telemetry.value("rate") == 1.5


# -- long records --------------------------------------------------------------------------------------


def test_a_long_record_is_read_in_slices_and_folds_to_the_same(finished_sample: Sample) -> None:
    for kind in (Bridge, ReplayBridge):
        whole, sliced = kind(finished_sample.folder), kind(finished_sample.folder)
        whole.poll()
        shares = []
        while sliced.poll(1e-9) and sliced.behind:
            shares.append(sliced.share_read)
        assert len(shares) > 100
        assert shares == sorted(shares)
        assert 0.0 < shares[0] < 0.1
        assert encoded(sliced.fold.history) == encoded(whole.fold.history)
        assert sliced.cursor == whole.cursor


def test_the_screen_says_how_far_it_has_read(tmp_path: Path) -> None:
    """Pitfall 28: a day's record takes a moment; the screen is there before it is whole."""
    sample = long_session(tmp_path / "first", 400, machine_now())
    app = app_of(sample)
    app.bridge.poll(1e-9)
    seen = []

    async def script(app: CakeApp, pilot: Pilot[int]) -> None:
        app.query_one(Headline).reading(app.bridge.share_read)
        seen.append(text_of(app).splitlines()[0])
        await pilot.pause(0.2)
        assert f"#{sample.number - 1} " in text_of(app)

    play(app, script)
    assert re.match(r" +READING +\d+ % of the record", seen[0])
