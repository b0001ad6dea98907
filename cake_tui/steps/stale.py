"""Stale clocks: which series to believe, judged from the readings right before and right after each.

A pure state machine over readings, one table of checks by code; on the CPU S2, S4 and S9.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from cake_tui.model.measure import Clock, Series, Stale

LOW_SHARE = 0.90  # S2: below this share of the normal rate
STEADY_STEP = 0.01  # S2: three readings in a row that differ by more than this are a ramp
SHIFT = 0.02  # S4: off the normal rate by more than this
SHIFT_SERIES = 3  # S4: for so many series in a row
MORE_TASKS = 1.0  # S9: so many runnable tasks of others above the normal, before and after
MORE_STEAL_PCT = 5.0  # S9: so much more of the time taken by the hypervisor
PAUSE_S = 30.0  # S9: in all, until the guard goes on with what there is; half as long each time it did
CALM_SERIES = 10  # S9: the machine counts as shared until so many quiet series in a row; twice as many each time
MOST_HALVINGS = 6
LEARN_SERIES = 5  # the normal rate is the median of the first so many
WIDER = 1.5  # a state taken as normal is given this much room


class State(msgspec.Struct, frozen=True):
    """What the guard holds as normal, and its streak of refusals.

    Rates are dependent additions a nanosecond (on a GPU the device clock in GHz); None: not known yet.
    """

    rate: float | None = None
    load: float | None = None
    steal_pct: float | None = None
    step: float = STEADY_STEP
    learned: tuple[float, ...] = ()  # rates of the first series since the last baseline
    last: tuple[float, ...] = ()  # the two latest readings
    shifted: tuple[float, ...] = ()  # rates of the series in a row that were off by more than 2 %
    refused: tuple[tuple[str, Series], ...] = ()  # in a row, with the code that refused each
    quiet: tuple[float | None, float | None] | None = None  # load and steal before a busy state was taken as normal
    calm: int = 0  # series in a row, since then, that the quiet normal would have let through
    given_in: int = 0  # how often a busy state was taken as normal: who waits in vain waits less the next time

    @property
    def shared(self) -> bool:
        """Others use the machine, and the guard has gone on all the same."""
        return self.quiet is not None


class Judgement(msgspec.Struct, frozen=True):
    """What to do with a series: keep it or take it again after `pause_s` seconds."""

    keep: bool
    stale: tuple[Stale, ...] = ()
    pause_s: float = 0.0
    rebaseline: bool = False  # the clock has another normal: refresh the incumbent's time
    recalibrate: bool = False  # the pair noise of before does not hold
    notice: str = ""  # for a person, where the guard gave up refusing


def rates_of(series: Series) -> tuple[float, ...]:
    """Return the usable readings of the rate, before and after."""
    found = (clock.rate for clock in (series.before, series.after) if clock is not None)
    return tuple(rate for rate in found if rate is not None and math.isfinite(rate) and rate > 0.0)


def rate_of(series: Series) -> float | None:
    """Return the better of the two readings: a loop that was preempted reads too low, never too high."""
    return max(rates_of(series), default=None)


def _clocks(series: Series) -> tuple[Clock, ...]:
    return tuple(clock for clock in (series.before, series.after) if clock is not None)


# -- the checks: what they saw, or None ---------------------------------------------------------------------


def _idle_or_ramp(state: State, series: Series) -> str | None:
    """S2: the clock is far below its normal, or still moving."""
    rate = rate_of(series)
    if state.rate is not None and rate is not None and rate < LOW_SHARE * state.rate:
        return f"rate {rate:.4g} additions/ns, expected {state.rate:.4g} (at least {LOW_SHARE:.0%} of it)"
    three = (state.last + rates_of(series))[-3:]
    if len(three) == 3 and all(abs(now / before - 1.0) > state.step for before, now in itertools.pairwise(three)):
        shown = ", ".join(f"{rate:.4g}" for rate in three)
        return f"rates {shown} additions/ns in a row, expected steady within {state.step:.1%}"
    return None


def _foreign_load(state: State, series: Series) -> str | None:
    """S9: others work on this machine during the series."""
    loads = [clock.load for clock in _clocks(series) if clock.load is not None]
    if state.load is not None and len(loads) == 2 and min(loads) >= state.load + MORE_TASKS:
        return f"{min(loads):g} runnable tasks of others, expected {state.load:g}"
    steal = series.after.steal_pct if series.after is not None else None
    if state.steal_pct is not None and steal is not None and steal > state.steal_pct + MORE_STEAL_PCT:
        return f"{steal:.1f} % of the time stolen, expected {state.steal_pct:.1f} %"
    return None


# -- what a state that stays is taken for --------------------------------------------------------------------


def _adopt_rate(state: State, seen: list[Series]) -> State:
    """The clock as seen in the refused series is the normal one, and its steps are its normal steps."""
    readings = [reading for series in seen for reading in rates_of(series)]
    rates = [rate for series in seen if (rate := rate_of(series)) is not None]
    steps = [abs(now / before - 1.0) for before, now in itertools.pairwise(readings)]
    # The lowest one seen must pass from here on, whatever the median is.
    normal = min(statistics.median(rates), min(rates) / LOW_SHARE)
    step = max(state.step, WIDER * max(steps, default=0.0))
    return msgspec.structs.replace(state, rate=normal, step=step, learned=(), last=(), shifted=())


def _adopt_load(state: State, seen: list[Series]) -> State:
    """The load of others as seen in the refused series is the normal one; the machine is shared."""
    clocks = [clock for series in seen for clock in _clocks(series)]
    loads = [clock.load for clock in clocks if clock.load is not None]
    steals = [clock.steal_pct for clock in clocks if clock.steal_pct is not None]
    return msgspec.structs.replace(
        state,
        load=max([state.load or 0.0, *loads]),
        steal_pct=max([state.steal_pct or 0.0, *steals]),
        quiet=state.quiet or (state.load, state.steal_pct),
        calm=0,
        given_in=state.given_in + 1,
    )


class Refusal(NamedTuple):
    """A check that refuses a series, and how it takes a state that stays."""

    code: str
    name: str
    sees: Callable[[State, Series], str | None]
    adopt: Callable[[State, list[Series]], State]
    total_pause_s: float
    reaction: str


REFUSALS = (
    Refusal("S2", "idle or ramp", _idle_or_ramp, _adopt_rate, 0.0, "series repeated"),
    Refusal("S9", "foreign load", _foreign_load, _adopt_load, PAUSE_S, "series repeated after a pause"),
)


# -- the machine ---------------------------------------------------------------------------------------------


def judge(state: State, series: Series, refusals: int) -> tuple[State, Judgement]:
    """Judge one series; after `refusals` refused in a row the state seen is taken as normal and kept."""
    for check in REFUSALS:
        saw = check.sees(state, series)
        if saw is not None:
            return _refuse(state, series, check, saw, refusals)
    return _keep(state, series)


def _refuse(state: State, series: Series, check: Refusal, saw: str, refusals: int) -> tuple[State, Judgement]:
    streak = (*state.refused, (check.code, series))
    if len(streak) >= refusals:
        return _give_in(state, streak, check, saw, refusals)
    total_s = check.total_pause_s / 2.0 ** min(state.given_in, MOST_HALVINGS)
    pause_s = total_s * 2.0 ** (len(streak) - 1) / (2.0 ** (refusals - 1) - 1.0)
    state = msgspec.structs.replace(state, refused=streak, last=(state.last + rates_of(series))[-2:])
    reaction = check.reaction if pause_s == 0.0 else f"{check.reaction} of {pause_s:.1f} s"
    return state, Judgement(keep=False, stale=(Stale(check.code, saw, reaction),), pause_s=pause_s)


def _give_in(
    state: State, streak: tuple[tuple[str, Series], ...], last: Refusal, saw: str, refusals: int
) -> tuple[State, Judgement]:
    """Never a silent nothing: say who refused what and go on with the state as it is."""
    fired = {code for code, _ in streak}
    for check in REFUSALS:
        if check.code in fired:
            state = check.adopt(state, [series for code, series in streak if code == check.code])
    kept, judgement = _keep(msgspec.structs.replace(state, refused=()), streak[-1][1])
    notice = (
        f"guard {last.code} ({last.name}) refused {len(streak)} series in a row: {saw}; taken as normal from here"
        f"{', the machine is marked as shared' if 'S9' in fired else ''} (setting guard_refusals = {refusals})"
    )
    stale = (Stale(last.code, saw, f"taken as normal after {len(streak)} refusals in a row"), *judgement.stale)
    return kept, Judgement(keep=True, stale=stale, rebaseline="S2" in fired, recalibrate=True, notice=notice)


def _keep(state: State, series: Series) -> tuple[State, Judgement]:
    """Learn the normal rate from the first series; S4 where it has moved for good."""
    rates = rates_of(series)
    loads = [clock.load for clock in _clocks(series) if clock.load is not None]
    steals = [clock.steal_pct for clock in _clocks(series) if clock.steal_pct is not None]
    learning = bool(rates) and len(state.learned) < LEARN_SERIES and not state.shared
    state = msgspec.structs.replace(
        state,
        refused=(),
        last=(state.last + rates)[-2:],
        load=_least(state.load, loads, learning),
        steal_pct=_least(state.steal_pct, steals, learning),
    )
    state, calmed = _calm_down(state, series)
    if not rates:
        return state, Judgement(keep=True, recalibrate=calmed)
    rate = max(rates)
    if state.rate is not None and abs(rate / state.rate - 1.0) > SHIFT:
        return _shift(state, rate, state.rate, calmed)
    learned = state.learned if len(state.learned) >= LEARN_SERIES else (*state.learned, rate)
    normal = state.rate if learned == state.learned else statistics.median(learned)
    state = msgspec.structs.replace(state, rate=normal, learned=learned, shifted=())
    return state, Judgement(keep=True, recalibrate=calmed)


def _least(normal: float | None, seen: list[float], learning: bool) -> float | None:
    """The normal of a session is the least that its first series saw."""
    if not seen or (normal is not None and not learning):
        return normal
    return min(seen) if normal is None else min(normal, *seen)


def _calm_down(state: State, series: Series) -> tuple[State, bool]:
    """Return to the quiet normal when the others have been gone for a while; the second value says that they have."""
    if state.quiet is None:
        return state, False
    load, steal_pct = state.quiet
    quiet = msgspec.structs.replace(state, load=load, steal_pct=steal_pct)
    calm = state.calm + 1 if _foreign_load(quiet, series) is None else 0
    if calm < CALM_SERIES * 2 ** min(state.given_in - 1, MOST_HALVINGS):
        return msgspec.structs.replace(state, calm=calm), False
    return msgspec.structs.replace(quiet, quiet=None, calm=0), True


def _shift(state: State, rate: float, normal: float, calmed: bool) -> tuple[State, Judgement]:
    """Count the series whose rate is off; the third in a row makes theirs the normal one."""
    shifted = (*state.shifted, rate)
    if len(shifted) < SHIFT_SERIES:
        return msgspec.structs.replace(state, shifted=shifted), Judgement(keep=True, recalibrate=calmed)
    now = statistics.median(shifted)
    saw = f"rate {now:.4g} additions/ns for {len(shifted)} series, expected {normal:.4g}"
    state = msgspec.structs.replace(state, rate=now, learned=shifted, shifted=())
    stale = Stale("S4", saw, "new normal rate; the incumbent's time is refreshed, paired decisions stay valid")
    return state, Judgement(keep=True, stale=(stale,), rebaseline=True, recalibrate=calmed)
