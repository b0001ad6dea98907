"""The engine around a scripted loop: endings, pauses, requests, guards, heartbeat, gaps."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import threading
import time
from pathlib import Path

import msgspec
import pytest

from cake_tui.engine.drive import Engine
from cake_tui.model import event as ev
from cake_tui.model.measure import Clock
from cake_tui.store.clock import Clocks
from cake_tui.store.inbox import new_id, send, wait_for
from cake_tui.store.lock import living_holder
from cake_tui.store.reading import JournalReader
from cake_tui.store.snapshot import fold, read_head
from cake_tui.store.telemetry import BeatReader
from tests.engine import scripted
from tests.engine.rest import rest
from tests.engine.scripted import Script, folded, kinds, until


def of_kind(session: Path, kind: type[ev.Event]) -> list[ev.Event]:
    return [event for event in JournalReader(session / "journal.jsonl").read() if isinstance(event, kind)]


def test_a_run_ends_done_with_everything_on_disk(tmp_path: Path) -> None:
    assert scripted.run(tmp_path, "a", Script(candidates=12)) == 0
    session = tmp_path / "a"
    (ended,) = of_kind(session, ev.EngineEnded)
    assert isinstance(ended, ev.EngineEnded)
    assert (ended.state, ended.reason, ended.exit_code) == ("done", "12 of 12 candidates", 0)
    history = folded(session)
    assert [row.number for row in history.rows] == list(range(12))
    assert history.incumbent == 10
    assert (session / "best" / "kernel.c").read_text(encoding="utf-8") == "// candidate 10\n"
    head = read_head(session)
    assert head is not None
    assert (head.seq, head.summary.state) == (history.seq, "done")
    assert living_holder(session / "lock") is None
    assert "DONE: 12 of 12 candidates" in (session / "engine.log").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("script", "code", "state", "reason"),
    [
        (Script(bug_at=3), 1, "failed", "ZeroDivisionError"),
        (Script(mistake_at=0), 2, "failed", "actions.toml:3: no such knob; actions.toml:9: no such edit"),
        (Script(ended_at=0), 6, "failed", "candidate 0 has no time"),
    ],
)
def test_a_loop_that_fails_says_how_and_keeps_what_was_there(
    tmp_path: Path, script: Script, code: int, state: str, reason: str
) -> None:
    assert scripted.run(tmp_path, "a", script) == code
    history = folded(tmp_path / "a")
    assert (history.state, history.exit_code) == (state, code)
    assert reason in history.state_reason
    log = (tmp_path / "a" / "engine.log").read_text(encoding="utf-8")
    assert ("Traceback" in log) == (code == 1)
    assert scripted.run(tmp_path, "a", Script(candidates=5)) == 0  # and it can be resumed


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_it_in_order(tmp_path: Path, number: int, code: int) -> None:
    engine = subprocess.Popen(
        scripted.command(tmp_path, "a", candidates=1000, step_s=0.05), stdout=subprocess.DEVNULL
    )  # fmt: skip
    session = tmp_path / "a"
    until(lambda: (session / "journal.jsonl").exists() and kinds(session).count("CandidateEnded") >= 1)
    engine.send_signal(number)
    assert engine.wait(60) == code
    history = folded(session)
    assert history.state == "stopped"
    assert not list(history.in_flight())
    assert history.rows[-1].outcome in ("Interrupted", "Measured")
    (ended,) = of_kind(session, ev.EngineEnded)
    assert isinstance(ended, ev.EngineEnded)
    assert ended.reason == signal.Signals(number).name


def test_whoever_asks_twice_ends_a_step_that_hears_nothing(tmp_path: Path) -> None:
    engine = subprocess.Popen(
        scripted.command(tmp_path, "a", step_s=60, deaf=1), stdout=subprocess.DEVNULL
    )  # fmt: skip
    session = tmp_path / "a"
    until(lambda: (session / "telemetry.jsonl").exists())
    rest(0.2, lambda: [engine.pid], engine.poll)  # it is in its first step
    engine.terminate()
    assert rest(0.2, lambda: [engine.pid], engine.poll) is None
    engine.terminate()
    assert engine.wait(60) == -signal.SIGTERM
    assert living_holder(session / "lock") is None


def test_pause_holds_the_run_between_two_steps_and_its_time_does_not_count(tmp_path: Path) -> None:
    session = tmp_path / "a"
    seen: dict[str, object] = {}

    def person() -> None:
        until(lambda: session.exists() and kinds(session).count("CandidateEnded") >= 2)
        assert isinstance(wait_for(session, send(session, "pause", who="me"), 60), ev.RequestTaken)
        before = rest(0.3, list, lambda: kinds(session))  # the step under way has ended
        time.sleep(0.5)
        seen["still"] = kinds(session) == before
        head = read_head(session)
        seen["shown"] = head.summary.state if head is not None else None
        again = wait_for(session, send(session, "pause", who="me"), 60)
        seen["again"] = again.reason if isinstance(again, ev.RequestRefused) else None
        assert isinstance(wait_for(session, send(session, "resume", who="me"), 60), ev.RequestTaken)
        send(session, "stop", who="me")

    thread = threading.Thread(target=person)
    thread.start()
    began = time.monotonic()
    assert scripted.run(tmp_path, "a", Script(candidates=1000, step_s=0.02)) == 0
    took = time.monotonic() - began
    thread.join()
    assert seen == {"still": True, "shown": "paused", "again": "it is paused already, by me"}
    assert folded(session).elapsed_s < took - 0.4


def test_stop_by_request_is_exit_code_nought(tmp_path: Path) -> None:
    started = scripted.start(tmp_path, candidates=1000, step_s=0.02)
    session = tmp_path / "a"
    until(lambda: kinds(session).count("CandidateEnded") >= 2)
    taken = wait_for(session, send(session, "stop", who="me"), 60)
    assert isinstance(taken, ev.RequestTaken)
    until(lambda: scripted.gone(started.pid))
    history = folded(session)
    assert (history.state, history.state_reason, history.exit_code) == ("stopped", "by me", 0)


def test_an_injected_move_is_taken_up_and_the_same_id_never_acts_twice(tmp_path: Path) -> None:
    session = tmp_path / "a"
    request = new_id()

    def before(engine: Engine) -> None:
        for _ in range(3):
            send(session, "inject", {"text": "apply_unroll(4) + apply_vectorize(8)", "reason": "try"}, id=request)

    assert scripted.run(tmp_path, "a", Script(candidates=3), before=before) == 0
    send(session, "inject", {"text": "apply_unroll(4)"}, id=request)  # sent again after a lost connection
    assert scripted.run(tmp_path, "a", Script(candidates=5)) == 0
    assert len(of_kind(session, ev.RequestTaken)) == 1
    assert not of_kind(session, ev.RequestRefused)
    history = folded(session)
    taken_up = [row for row in history.rows if row.proposal.request == request]
    assert [row.proposal.text for row in taken_up] == ["apply_unroll(4) + apply_vectorize(8)"]
    assert list((session / "inbox").iterdir()) == []


def test_a_request_journaled_before_a_crash_is_not_taken_again(tmp_path: Path) -> None:
    session = tmp_path / "a"
    assert scripted.run(tmp_path, "a", Script(candidates=2), before=lambda _: mark(session)) == 0
    (taken,) = of_kind(session, ev.RequestTaken)
    assert isinstance(taken, ev.RequestTaken)
    # The engine died after its answer was on disk and before the file was gone.
    send(session, "mark", {"note": "hello"}, id=taken.id)
    assert scripted.run(tmp_path, "a", Script(candidates=3)) == 0
    assert len(of_kind(session, ev.RequestTaken)) == 1
    assert list((session / "inbox").iterdir()) == []


def mark(session: Path) -> None:
    send(session, "mark", {"note": "hello"})


def test_hostile_files_are_refused_and_the_run_goes_on(tmp_path: Path) -> None:
    session = tmp_path / "a"

    def before(engine: Engine) -> None:
        inbox = session / "inbox"
        (inbox / "binary.json").write_bytes(bytes(range(256)))
        (inbox / "big.json").write_bytes(b"x" * (10 << 20))
        (inbox / "folder.json").mkdir()
        (inbox / "link.json").symlink_to("/etc/passwd")
        for number in range(250):
            (inbox / f"many-{number}.json").write_bytes(b"?")

    assert scripted.run(tmp_path, "a", Script(candidates=4), before=before) == 0
    refused = of_kind(session, ev.RequestRefused)
    assert len(refused) == 254
    assert len({event.id for event in refused if isinstance(event, ev.RequestRefused)}) == 254
    assert folded(session).effective == 4


def test_requests_that_steer_an_engine_of_yesterday_are_refused(tmp_path: Path) -> None:
    session = tmp_path / "a"
    assert scripted.run(tmp_path, "a", Script(candidates=2)) == 0
    stop, note = send(session, "stop"), send(session, "mark", {"note": "still good"})
    assert scripted.run(tmp_path, "a", Script(candidates=4)) == 0
    history = folded(session)
    assert history.request_ids[stop] == "refused"
    assert history.request_ids[note] == "taken"
    assert history.effective == 4


def test_equal_failures_in_a_row_pause_the_run_with_their_reason(tmp_path: Path) -> None:
    session = tmp_path / "a"
    started = scripted.start(tmp_path, fail="unsupported gpu architecture", equal_failures=6)
    until(lambda: "PausedByGuard" in kinds(session))
    history = folded(session)
    assert history.state == "paused"
    assert history.paused_by == "equal failures"
    assert "6 candidates in a row ended BuildFailed: unsupported gpu architecture" in history.state_reason
    assert "equal_failures" in history.state_reason
    assert history.counts["failed"] == 6
    assert isinstance(wait_for(session, send(session, "resume"), 60), ev.RequestTaken)
    until(lambda: kinds(session).count("PausedByGuard") == 2)
    assert folded(session).counts["failed"] == 12
    send(session, "stop")
    until(lambda: scripted.gone(started.pid))


def test_settings_change_mid_run_and_stay_for_the_resume(tmp_path: Path) -> None:
    session = tmp_path / "a"

    def before(engine: Engine) -> None:
        send(session, "set", {"values": {"candidates": "900", "round": 6}}, who="me")
        send(session, "set", {"values": {"round": 0}})
        send(session, "set", {"values": {"ruond": 4}})
        send(session, "set", {"values": 3})

    assert scripted.run(tmp_path, "a", Script(candidates=2), before=before) == 0
    (changed,) = of_kind(session, ev.SettingsChanged)
    assert isinstance(changed, ev.SettingsChanged)
    assert changed.changes == (("candidates", "600", "900"), ("round", "4", "6"))
    reasons = [event.reason for event in of_kind(session, ev.RequestRefused) if isinstance(event, ev.RequestRefused)]
    assert ["1 to 64" in reasons[0], '"round"' in reasons[1], "values" in reasons[2]] == [True, True, True]
    assert scripted.run(tmp_path, "a", Script(candidates=3)) == 0
    assert len(of_kind(session, ev.SettingsChanged)) == 1  # the resume finds nothing that differs
    assert folded(session).settings["candidates"] == 900


def test_settings_edited_by_hand_are_listed_old_and_new_at_resume(tmp_path: Path) -> None:
    session = tmp_path / "a"
    assert scripted.run(tmp_path, "a", Script(candidates=3)) == 0
    best = folded(session).incumbent
    path = session / "session.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("patience = 20", "patience = 7"), encoding="utf-8")
    assert scripted.run(tmp_path, "a", Script(candidates=5), values={"hours": 2.0}) == 0
    started = of_kind(session, ev.EngineStarted)[1]
    assert isinstance(started, ev.EngineStarted)
    assert started.changes == (("hours", "24.0", "2.0"), ("patience", "20", "7"))
    assert folded(session).settings["patience"] == 7
    assert folded(session).incumbent in (best, 0)
    log = (session / "engine.log").read_text(encoding="utf-8")
    assert "patience: 20 → 7" in log


def test_a_hung_monitor_is_said_and_holds_nothing_up(tmp_path: Path) -> None:
    class Hung:
        def read(self) -> Clock:
            time.sleep(3600)
            raise AssertionError

        def missing(self) -> dict[str, str]:
            return {}

    class Good:
        def read(self) -> Clock:
            return Clock(mono=time.monotonic(), load=0.25, sm_mhz=2500.0)

        def missing(self) -> dict[str, str]:
            return {"temperature_c": "no sensor"}

    assert scripted.run(tmp_path, "hung", Script(candidates=4, step_s=0.05), monitor=Hung()) == 0
    assert all(beat.clock is None for beat in BeatReader(tmp_path / "hung" / "telemetry.jsonl", 4 << 20).read())
    assert scripted.run(tmp_path, "good", Script(candidates=4, step_s=0.05), monitor=Good()) == 0
    last = BeatReader(tmp_path / "good" / "telemetry.jsonl", 4 << 20).read()[-1]
    assert last.clock is not None
    assert (last.clock.load, last.missing) == (0.25, {"temperature_c": "no sensor"})


def test_the_heart_beats_while_a_step_hears_nothing(tmp_path: Path) -> None:
    script = Script(candidates=1, step_s=0.3, deaf=True, heartbeat=0.05)
    assert scripted.run(tmp_path, "a", script) == 0
    beats = BeatReader(tmp_path / "a" / "telemetry.jsonl", 4 << 20).read()
    gaps = [later.mono - earlier.mono for earlier, later in itertools.pairwise(beats)]
    assert len(beats) >= 15
    assert sorted(gaps)[len(gaps) // 2] == pytest.approx(0.05, abs=0.01)
    assert beats[3].state == "running"
    assert beats[-1].pid > 0


class Stepped(Clocks):
    """A wall clock that jumps when told to."""

    def __init__(self) -> None:
        self.step_s = 0.0

    def wall(self) -> float:
        return time.time() + self.step_s


@pytest.mark.parametrize("hours", [10, -2])
def test_a_stepped_wall_clock_is_one_gap_and_costs_no_budget(tmp_path: Path, hours: float) -> None:
    clocks = Stepped()

    def before(engine: Engine) -> None:
        threading.Timer(0.3, lambda: setattr(clocks, "step_s", hours * 3600)).start()

    began = time.monotonic()
    assert scripted.run(tmp_path, "a", Script(candidates=6, step_s=0.03), clocks=clocks, before=before) == 0
    took = time.monotonic() - began
    (gap,) = of_kind(tmp_path / "a", ev.GapSeen)
    assert isinstance(gap, ev.GapSeen)
    assert gap.what == "wall"
    assert gap.seconds == pytest.approx(hours * 3600, abs=5)
    assert 0 < folded(tmp_path / "a").elapsed_s <= took
    log = (tmp_path / "a" / "engine.log").read_text(encoding="utf-8")
    assert f"gap of {abs(hours)} h" in log


def test_a_stopped_process_is_a_gap_and_costs_no_budget(tmp_path: Path) -> None:
    engine = subprocess.Popen(
        scripted.command(tmp_path, "a", candidates=1000, step_s=0.02), stdout=subprocess.DEVNULL
    )  # fmt: skip
    session = tmp_path / "a"
    until(lambda: (session / "journal.jsonl").exists() and kinds(session).count("CandidateEnded") >= 1)
    before, began = folded(session), time.monotonic()
    engine.send_signal(signal.SIGSTOP)
    time.sleep(1.5)
    engine.send_signal(signal.SIGCONT)
    until(lambda: "GapSeen" in kinds(session))
    seen = time.monotonic()
    until(lambda: kinds(session)[-1] == "CandidateEnded")
    after = folded(session)
    (gap,) = of_kind(session, ev.GapSeen)
    assert isinstance(gap, ev.GapSeen)
    assert gap.what == "stopped"
    assert 1.3 < gap.seconds < seen - began + 1.0
    assert 0 <= after.elapsed_s - before.elapsed_s < after.last_mono - before.last_mono - 1.3
    engine.terminate()
    assert engine.wait(60) == 143


def test_the_time_without_an_engine_is_a_gap_that_costs_nothing(tmp_path: Path) -> None:
    assert scripted.run(tmp_path, "a", Script(candidates=2)) == 0
    before = folded(tmp_path / "a").elapsed_s
    time.sleep(0.4)
    began = time.monotonic()
    assert scripted.run(tmp_path, "a", Script(candidates=3)) == 0
    took = time.monotonic() - began
    (gap,) = of_kind(tmp_path / "a", ev.GapSeen)
    assert isinstance(gap, ev.GapSeen)
    assert gap.what == "offline"
    assert 0.4 <= gap.seconds < 5
    assert before <= folded(tmp_path / "a").elapsed_s <= before + took


def test_a_snapshot_follows_each_candidate_and_show_folds_the_tail(tmp_path: Path) -> None:
    assert scripted.run(tmp_path, "a", Script(candidates=6)) == 0
    session = tmp_path / "a"
    made = fold(session)
    assert made.history == folded(session)
    whole = json.loads((session / "snapshot.json").read_text(encoding="utf-8"))
    assert len(whole["rows"]) == 6
    assert msgspec.convert(whole["summary"]["candidates"]["effective"], int) == 6
