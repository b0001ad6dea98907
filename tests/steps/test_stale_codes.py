"""The ten stale-clock codes under a stand-in for NVML and a made-up device clock: code, reaction, pane, journal."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from cake_tui.model import event as ev
from cake_tui.model.device import Device
from cake_tui.model.history import History
from cake_tui.model.measure import STALE_NAMES, GateResult, Pair, Series
from cake_tui.monitors import _users, nvml
from cake_tui.monitors.nvml import NvmlMonitor
from cake_tui.steps.measure import Ask
from cake_tui.steps.noise import Guard
from cake_tui.store.line import line_of
from tests.monitors.stand_in import stand_in
from tests.tui.conftest import app_of
from tests.tui.picture import text_of
from tests.tui.pilot import play, press
from tests.tui.sample import Sample

OURS = "GPU-11111111-0000-0000-0000-000000000000"
H200 = Device("cuda", "cuda", "NVIDIA H200", OURS, "sm_90a", 132, capability=90)
IDLE, APPLICATION, CAP, SYNC, HARD_HEAT = 0x1, 0x2, 0x4, 0x10, 0x40
PAIR = Ask(4)


class Machine:
    """A GPU that runs a kernel of 60 us at 1.98 GHz; `during` is what happens while a series is timed."""

    def __init__(self, pynvml: Any) -> None:
        self.gpu = pynvml.reset()
        self.pynvml = pynvml
        self.ghz: float | None = 1.98
        self.candidate_factor = 1.0
        self.late_s = 0.0  # the engine reads, and the series is timed so much later
        self.during: Callable[[], None] = lambda: None
        self.taken = 0
        self.waited_s: list[float] = []
        self.evaluator = NvmlMonitor(H200)
        self.guard = Guard(monitor=NvmlMonitor(H200), rest=lambda seconds, wait: self.waited_s.append(seconds))

    def take(self, ask: Ask) -> Series:
        self.taken += 1
        before = self.evaluator.read_device()
        self.during()
        after = self.evaluator.read_device()
        clock = self.ghz or 1.98
        other = None if self.ghz is None else self.ghz * self.candidate_factor
        pairs = [
            Pair(60.0 * 1.98 / clock, 60.0 * 1.98 / clock / self.candidate_factor, bool(index % 2), self.ghz, other)
            for index in range(ask.pairs)
        ]
        if self.late_s:
            before = msgspec.structs.replace(before, mono=before.mono + self.late_s)
        return Series(tuple(pairs), before, after)

    def series(self, count: int = 1) -> list[Series]:
        """Take so many series of one match."""
        take = self.guard.watched(self.take)
        return [take(PAIR) for _ in range(count)]

    def counter(self, field: int, ms: float) -> None:
        """Let a throttle counter advance while each series is timed."""

        def advance() -> None:
            self.gpu.fields[field] += int(ms * 1e6)

        self.during = advance

    def events(self) -> list[ev.Event]:
        return list(self.guard.events(7, 3))


@pytest.fixture(autouse=True)
def _ask_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test has no half a second between two series."""
    monkeypatch.setattr(_users, "EVERY_S", 0.0)
    monkeypatch.setattr(nvml, "HEALTH_EVERY_S", 0.0)


@pytest.fixture
def pynvml(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The library's stand-in."""
    return stand_in(monkeypatch)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A calm machine on which six series were taken."""
    made = Machine(stand_in(monkeypatch))
    made.series(6)
    assert made.events() == []
    assert made.guard.codes == ()
    made.taken = 0
    return made


class Case(NamedTuple):
    """What to do to the machine, how many series to take, what the guard says and does."""

    disturb: Callable[[Machine], object]
    series: int
    saw: str
    reaction: str
    repeats: bool  # the first series is not believed


def disturb_fail(machine: Machine) -> None:
    """NVML never gives a clock: a session of its own, since what worked before and fails is another code."""
    machine.guard.forget()
    machine.gpu.fails["nvmlDeviceGetClockInfo"] = 999


def disturb_users(machine: Machine) -> None:
    machine.gpu.graphics = [machine.pynvml.Process(1, 5 << 30)]


CASES = {
    "S0": Case(disturb_fail, 1, "NVMLError_Unknown", "the device's own clock decides", False),
    "S1": Case(lambda m: setattr(m, "late_s", 0.4), 1, "0.40 s away", "the device's own clock decides", False),
    "S2": Case(lambda m: setattr(m, "ghz", 0.345), 1, "rate 0.345 GHz, expected 1.98", "series repeated", True),
    "S3": Case(lambda m: setattr(m, "candidate_factor", 0.985), 1, "-1.50%", "repeated, 3 times at most", True),
    "S4": Case(lambda m: setattr(m, "ghz", 1.92), 3, "rate 1.92 GHz for 3 series", "new normal rate", False),
    "S5": Case(lambda m: m.counter(270, 12.5), 1, "hardware thermal slowdown for 12.5 ms", "cooling down", True),
    "S6": Case(lambda m: m.counter(74, 30.0), 1, "power limit for 30.0 ms", "steady state, kept", False),
    "S7": Case(lambda m: setattr(m.gpu, "reasons", SYNC), 1, "sync boost; another party", "recorded, kept", False),
    "S8": Case(lambda m: setattr(m.gpu, "memory", 2619), 3, "2619 MHz for 3 series, expected 3201", "new", False),
    "S9": Case(disturb_users, 1, "1 processes of others on the device, expected 0", "after a pause of", True),
}  # fmt: skip


def fired(machine: Machine, code: str) -> list[ev.GuardFired]:
    """Disturb the machine as the code's case says and return what was journaled of it."""
    case = CASES[code]
    case.disturb(machine)
    machine.series(case.series)
    return [event for event in machine.events() if isinstance(event, ev.GuardFired) and event.stale.code == code]


# -- each fires ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", CASES)
def test_code_fires_with_what_was_seen_and_what_was_done(machine: Machine, code: str) -> None:
    case = CASES[code]
    first = fired(machine, code)[0]
    assert case.saw in first.stale.saw
    assert case.reaction in first.stale.reaction
    assert first.candidate == 7
    assert (machine.taken > case.series) is case.repeats
    line = line_of(first, History())
    assert line.startswith(f"{code} at #7: {first.stale.saw}; {first.stale.reaction}")


@pytest.mark.parametrize("code", CASES)
def test_code_stays_silent_on_a_calm_machine(machine: Machine, code: str) -> None:
    machine.series(20)
    assert [event for event in machine.events() if isinstance(event, ev.GuardFired)] == []
    assert machine.taken == 20


@pytest.mark.parametrize("code", ["S0", "S1", "S6", "S7"])
def test_what_only_holds_is_said_once_and_marks_every_result(machine: Machine, code: str) -> None:
    assert len(fired(machine, code)) == 1
    for _ in range(4):
        machine.series(5)
        assert machine.guard.codes == (code,)
        result = machine.guard.mark(GateResult("reject", 0.0, 0.0, 1, 4, False, "slower", 60.0, 60.0))
        assert result.stale_codes == (code,)
        assert not [event for event in machine.events() if isinstance(event, ev.GuardFired)]
    assert machine.taken == CASES[code].series + 20


def test_the_pane_shows_each_code_with_its_meaning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sample = Sample(tmp_path / "first")
    sample.run(4)
    pynvml = stand_in(monkeypatch)
    for code in CASES:
        machine = Machine(pynvml)
        machine.series(6)
        machine.events()
        sample.put(fired(machine, code)[0])
    shown: list[str] = []

    async def script(app: Any, pilot: Any) -> None:
        number = next(pane.number for pane in app._main.tiles.panes if pane.pane_name == "clocks")
        await press(app, pilot, str(number), "z")
        shown.append(text_of(app))

    play(app_of(sample), script, (160, 60))
    for code in CASES:
        assert f"{code} ×1" in shown[0]
        assert STALE_NAMES[code] in shown[0]


def test_without_a_clock_the_head_line_says_so_by_the_drivers_error(tmp_path: Path, pynvml: Any) -> None:
    sample = Sample(tmp_path / "first")
    sample.run(4)
    pynvml.INIT_FAILS.append(18)
    clock = NvmlMonitor(H200).read()
    sample.beat(3, **{**msgspec.structs.asdict(clock), "mono": sample.clock, "rate": None})
    shown: list[str] = []

    async def script(app: Any, pilot: Any) -> None:
        shown.append(text_of(app))

    play(app_of(sample), script, (160, 40))
    assert "clock guard off NVMLError_LibRmVersionMismatch" in shown[0]


def test_the_contributors_table_names_the_ten_tests() -> None:
    lines = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()
    named = [code for code in STALE_NAMES for line in lines if line.startswith(f"| {code} ") and f"`[{code}]`" in line]
    assert named == list(CASES) == list(STALE_NAMES)


# -- reactions -----------------------------------------------------------------------------------------------


def test_a_cold_clock_is_repeated_until_it_is_warm(machine: Machine) -> None:
    machine.ghz = 0.345
    clocks = iter([0.345, 1.97])

    def warm_up() -> None:
        machine.ghz = next(clocks, 1.98)

    machine.during = warm_up
    [kept] = machine.series()
    assert machine.taken >= 2
    assert kept.pairs[0].holder_ghz == pytest.approx(1.98, abs=0.02)


def test_a_candidate_that_moves_the_clock_is_kept_after_three_repeats_and_labelled(machine: Machine) -> None:
    machine.candidate_factor = 0.985
    machine.series(5)
    assert machine.taken == 5 + 3
    marked = machine.guard.mark(GateResult("accept", 0.02, 0.01, 1, 4, True, "confirmed", 60.0, 61.0))
    assert "clock differs -1.50%" in marked.reason
    assert "S3" in marked.stale_codes
    machine.events()
    machine.taken = 0
    machine.series(1)  # of the next candidate: again three repeats at most
    assert machine.taken == 1 + 3
    machine.events()
    machine.candidate_factor, machine.taken = 1.0, 0
    machine.series(3)
    assert machine.taken == 3
    assert machine.guard.codes == ()


def test_clocks_of_single_samples_that_scatter_are_no_mismatch(machine: Machine) -> None:
    machine.candidate_factor = 1.008
    machine.guard.watched(machine.take)(Ask(1))
    assert machine.guard.codes == ()


def test_another_normal_clock_times_the_best_again(machine: Machine) -> None:
    machine.ghz = 1.90
    machine.series(3)
    events = machine.events()
    [timed] = [event for event in events if isinstance(event, ev.IncumbentTimed)]
    assert timed.avg_us == pytest.approx(60.0 * 1.98 / 1.90)


def test_a_hot_device_cools_down_longer_each_time_and_is_taken_as_it_is_in_the_end(machine: Machine) -> None:
    machine.counter(269, 3.0)
    machine.series(1)
    pauses = [pause for pause in machine.waited_s if pause > 0.0]
    assert sum(pauses) == pytest.approx(180.0)
    assert pauses == sorted(pauses)
    [notice] = [event.text for event in machine.events() if isinstance(event, ev.Noticed)]
    assert "S5" in notice
    assert "guard_refusals" in notice
    machine.taken = 0
    machine.series(5)
    assert machine.taken == 5
    assert machine.guard.codes == ("S5",)
    machine.during = lambda: None
    machine.series(12)
    machine.events()
    machine.counter(269, 3.0)
    machine.series(1)
    assert "cooling down" in next(e.stale.reaction for e in machine.events() if isinstance(e, ev.GuardFired))


def test_one_bit_in_one_reading_is_no_proof_of_heat(machine: Machine) -> None:
    def for_a_moment() -> None:
        machine.gpu.reasons = HARD_HEAT

    machine.during = for_a_moment
    machine.series(1)
    assert machine.guard.codes == ()
    machine.series(1)
    assert "S5" in machine.guard.codes


def test_new_users_of_the_device_pause_it_and_then_it_counts_as_shared(machine: Machine) -> None:
    disturb_users(machine)
    machine.series(1)
    assert sum(machine.waited_s) == pytest.approx(30.0)
    assert machine.guard.shared
    machine.taken = 0
    machine.series(5)
    assert machine.taken == 5


def test_memory_taken_by_others_is_foreign_load(machine: Machine) -> None:
    machine.gpu.compute = [machine.pynvml.Process(os.getppid(), 1 << 30)]
    machine.guard.forget()
    machine.series(6)
    machine.events()
    machine.gpu.compute = [machine.pynvml.Process(os.getppid(), 4 << 30)]
    machine.series(1)
    assert "GB of the device's memory" in next(e.stale.saw for e in machine.events() if isinstance(e, ev.GuardFired))


def test_a_reading_that_fails_now_and_then_is_old_not_missing(machine: Machine) -> None:
    machine.gpu.fails["nvmlDeviceGetClockInfo"] = 999
    machine.series(1)
    assert machine.guard.codes == ("S1",)


def test_low_clock_and_power_cap_from_the_start_are_the_steady_state(monkeypatch: pytest.MonkeyPatch) -> None:
    # Case A08: 1005 of 1980 MHz and a power cap, always.
    machine = Machine(stand_in(monkeypatch))
    machine.ghz, machine.gpu.sm, machine.gpu.reasons = 1.005, 1005, CAP
    machine.series(200)
    assert machine.taken == 200
    assert [event.stale.code for event in machine.events() if isinstance(event, ev.GuardFired)] == ["S6"]


def test_without_any_clock_the_guard_says_that_it_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    pynvml = stand_in(monkeypatch)
    machine = Machine(pynvml)
    pynvml.INIT_FAILS.append(12)
    machine.ghz = None
    machine.series(3)
    [only] = [event.stale for event in machine.events() if isinstance(event, ev.GuardFired)]
    assert only.code == "S0"
    assert "LibraryNotFound" in only.saw
    assert "this guard is off" in only.reaction


def test_without_a_clock_on_the_device_the_one_of_nvml_shows_an_idle_gpu(machine: Machine) -> None:
    machine.guard.forget()
    machine.ghz = None
    machine.series(6)
    machine.events()
    machine.gpu.sm, machine.gpu.reasons = 345, IDLE
    machine.series(1)
    assert "S2" in machine.guard.codes


def test_ecc_errors_are_told_once(machine: Machine) -> None:
    machine.gpu.fields[4] = 2
    machine.series(10)
    notices = [event.text for event in machine.events() if isinstance(event, ev.Noticed)]
    assert len(notices) == 1
    assert "ECC" in notices[0]
