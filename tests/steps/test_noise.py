"""The guard around the gate (cases A08 and A10), the pair noise, and the gate tried on equal kernels."""

from __future__ import annotations

import math
import random
import re
import statistics

import pytest

from cake_tui.config import Gating
from cake_tui.model import event as ev
from cake_tui.model.measure import Clock, GateResult, Pair, Series
from cake_tui.steps.gate import gate
from cake_tui.steps.measure import Ask, answer, ask_noise
from cake_tui.steps.noise import Guard, calibrate, compare_with_itself
from tests.steps.noisy_machine import QUIET, NoisyMachine

CYCLES_PER_NS_US = 1.98  # at this rate the holder takes 1000 us


class Machine:
    """Runs kernels that need so many cycles at the clock of the moment, with 0.1 % spread."""

    def __init__(self, rate: float, candidate_cycles: float = 1.0, load: float = 0.0) -> None:
        self.rate = rate
        self.load = load
        self.candidate_cycles = candidate_cycles
        self.taken = 0
        self._random = random.Random(1)

    def take(self, ask: Ask) -> Series:
        self.taken += 1
        pairs = []
        for index in range(ask.pairs):
            holder, candidate = (1000.0 * CYCLES_PER_NS_US / self.rate * self._random.gauss(1.0, 0.001) for _ in "ab")
            pairs.append(Pair(holder, candidate * self.candidate_cycles, index % 2 == 0))
        clock = Clock(0.0, rate=self.rate * self._random.gauss(1.0, 0.0005), load=self.load)
        return Series(tuple(pairs), clock, clock)


def gated(guard: Guard, machine: Machine) -> GateResult:
    return guard.mark(answer(gate(Gating(), 0.0015, None), guard.watched(machine.take)))


# -- case A10: the clock drops between two candidates -------------------------------------------------------


def test_fewer_cycles_at_a_lower_clock_win_because_both_arms_are_timed_together() -> None:
    guard, machine = Guard(), Machine(1.98)
    for _ in range(20):
        gated(guard, machine)
    list(guard.events(20, 12))
    machine.rate, machine.candidate_cycles = 1.59, 0.97
    result = gated(guard, machine)
    assert result.decision == "accept"
    assert result.candidate_us > 1.2 * 1000.0 * 0.97  # slower than anything before, and better all the same
    assert result.gain == pytest.approx(-math.log(0.97), abs=0.002)
    events = list(guard.events(25, 12))
    fired = [event.stale for event in events if isinstance(event, ev.GuardFired)]
    assert {one.code for one in fired} == {"S2"}
    for one in fired:
        seen, expected = re.findall(r"\d\.\d+", one.saw)[:2]
        assert (float(seen), float(expected)) == pytest.approx((1.59, 1.98), rel=0.003)
    [timed] = [event for event in events if isinstance(event, ev.IncumbentTimed)]
    assert timed.candidate == 12
    assert timed.avg_us == pytest.approx(1000.0 * 1.98 / 1.59, rel=0.01)
    assert result.stale_codes == ("S2",)


@pytest.mark.parametrize("share", [0.97, 0.95, 1.05, 1.3])
def test_equal_cycles_at_another_clock_do_not_win(share: float) -> None:
    guard, machine = Guard(), Machine(1.98)
    gated(guard, machine)
    machine.rate *= share
    assert gated(guard, machine).decision == "reject"


def test_small_shift_is_journaled_as_s4_with_the_holder_timed_again() -> None:
    guard, machine = Guard(), Machine(1.98)
    for _ in range(3):
        gated(guard, machine)
    machine.rate = 1.90
    gated(guard, machine)
    events = list(guard.events(4, 0))
    assert [event.stale.code for event in events if isinstance(event, ev.GuardFired)] == ["S4"]
    assert any(isinstance(event, ev.IncumbentTimed) for event in events)


# -- case A08: a guard that would refuse everything ---------------------------------------------------------


def test_steady_clock_far_below_what_was_expected_is_measured_within_six_series() -> None:
    guard, machine = Guard(), Machine(1.98)
    gated(guard, machine)
    list(guard.events(0))
    machine.rate, machine.taken = 1.005, 0
    first = guard.watched(machine.take)(Ask(1))
    assert machine.taken <= 5
    assert first.pairs[0].candidate_us > 0.0
    [notice] = [event.text for event in guard.events(1) if isinstance(event, ev.Noticed)]
    assert "S2" in notice
    assert "guard_refusals" in notice
    assert guard.calibration_due


def test_low_clock_from_the_start_is_the_normal() -> None:
    guard, machine = Guard(), Machine(1.005)
    gated(guard, machine)
    assert list(guard.events(1)) == []


# -- pauses, monitors, codes --------------------------------------------------------------------------------


def test_pause_looks_at_requests_and_what_they_raise_ends_it() -> None:
    class Stopped(Exception):
        pass

    def wait() -> None:
        raise Stopped

    guard, machine = Guard(), Machine(1.98)
    guard.watched(machine.take)(Ask(1))
    machine.load = 5.0
    with pytest.raises(Stopped):
        guard.watched(machine.take, wait)(Ask(1))


def test_busy_machine_goes_on_as_shared_and_says_so() -> None:
    slept: list[float] = []
    guard, machine = Guard(rest=lambda seconds, wait: slept.append(seconds)), Machine(1.98)
    guard.watched(machine.take)(Ask(1))
    machine.load = 5.0
    guard.watched(machine.take)(Ask(1))
    assert guard.shared
    assert sum(slept) == pytest.approx(30.0)
    assert guard.codes == ("S9",)
    assert any("shared" in event.text for event in guard.events(1) if isinstance(event, ev.Noticed))
    assert guard.codes == ()


class Readings:
    """A monitor that knows load, and a rate that the evaluator knows better."""

    def __init__(self) -> None:
        self.count = 0

    def read(self) -> Clock:
        self.count += 1
        return Clock(float(self.count), rate=9.9, load=0.5, steal_pct=1.0, temperature_c=50.0)


def test_a_pause_is_said_while_it_lasts() -> None:
    shown: list[str] = [""]
    seen: list[str] = []
    guard, machine = Guard(rest=lambda seconds, wait: seen.append(shown[-1]), say=shown.append), Machine(1.98)
    gated(guard, machine)
    machine.load = 4.0
    gated(guard, machine)
    assert seen
    for text in seen:
        assert re.match(r"waiting \d+\.\d s for a steady machine: S9: .*tasks", text), text
    assert shown[-1] == ""


def test_monitor_fills_in_what_the_evaluator_did_not_read() -> None:
    monitor = Readings()
    guard = Guard(monitor=monitor)
    series = guard.watched(lambda ask: Series((Pair(1.0, 1.0, True),), Clock(7.0, rate=2.0)))(Ask(1))
    assert monitor.count == 2
    assert series.before == Clock(7.0, rate=2.0, load=0.5, steal_pct=1.0, temperature_c=50.0)
    assert series.after == Clock(2.0, rate=9.9, load=0.5, steal_pct=1.0, temperature_c=50.0)


def test_undecided_under_a_stale_clock_is_noisy_and_may_be_tried_again() -> None:
    guard, machine = Guard(), Machine(1.98)
    gated(guard, machine)
    machine.rate = 1.5
    guard.watched(machine.take)(Ask(1))
    open_result = GateResult("undecided", 0.01, -0.01, 5, 64, False, "open", 1.0, 1.0)
    assert guard.mark(open_result).decision == "noisy"
    assert guard.mark(open_result).stale_codes == ("S2",)
    list(guard.events(1))
    assert guard.mark(open_result) == open_result


@pytest.mark.parametrize(("before", "now", "fires"), [(0.01, 0.02, True), (0.01, 0.019, False), (None, 0.5, False)])
def test_pair_noise_that_doubled_is_foreign_load(before: float | None, now: float, fires: bool) -> None:
    guard = Guard()
    guard.calibration_due = True
    guard.calibrated(before, now)
    assert [event.stale.code for event in guard.events(None)] == (["S9"] if fires else [])
    assert not guard.calibration_due


def test_after_a_gap_the_normal_is_learnt_anew() -> None:
    guard, machine = Guard(), Machine(1.98)
    gated(guard, machine)
    guard.forget()
    machine.rate = 1.0
    gated(guard, machine)
    assert list(guard.events(1)) == []


# -- pair noise ---------------------------------------------------------------------------------------------


def test_pair_noise_is_the_spread_of_self_pairs_without_the_spikes() -> None:
    rng = random.Random(4)
    found = []
    for _ in range(40):

        def take(ask: Ask) -> Series:
            gains = [rng.gauss(0.0, 0.01) + (0.5 if rng.random() < 0.05 else 0.0) for _ in range(ask.pairs)]
            return Series(tuple(Pair(1000.0, 1000.0 * math.exp(-gain), True) for gain in gains))

        calibration = calibrate(take)
        assert calibration.pairs == 16
        found.append(calibration.pair_noise)
    assert statistics.fmean(found) == pytest.approx(0.01, rel=0.15)


def test_calibration_of_a_slow_kernel_stops_at_two_seconds_but_not_before_four_pairs() -> None:
    for seconds, pairs in ((0.1, 16), (0.6, 12), (0.9, 8), (50.0, 4)):
        spent = [0.0]

        def take(ask: Ask, spent: list[float] = spent, seconds: float = seconds) -> Series:
            spent[0] += seconds
            return Series((Pair(2.0, 2.1, True),) * ask.pairs)

        assert answer(ask_noise(lambda spent=spent: spent[0]), take).pairs == pairs


def test_pair_noise_is_never_nothing() -> None:
    assert calibrate(lambda ask: Series((Pair(1.0, 1.0, True),) * ask.pairs)).pair_noise > 0.0


# -- the gate on a kernel against itself --------------------------------------------------------------------


def test_self_comparisons_count_what_the_gate_accepts() -> None:
    machine = NoisyMachine(QUIET, seed=2)
    totals = list(compare_with_itself(Gating(), machine.take, 40))
    assert [total.comparisons for total in totals] == list(range(1, 41))
    last = totals[-1]
    assert last.accepted == 0
    assert last.accepted + last.rejected + last.undecided + last.noisy == 40
    assert last.series >= 40 * 3
    assert 0.002 < last.pair_noise < 0.008


def test_self_comparisons_show_a_machine_that_favours_one_arm() -> None:
    machine = NoisyMachine(QUIET, seed=2)
    machine.gain = 0.03
    assert list(compare_with_itself(Gating(), machine.take, 10))[-1].accepted == 10
