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
STEADY_STEP = 0.01  # S2: three readings in a row, each more than this above (or below) the one before, are a ramp
SHIFT = 0.02  # S4: off the normal rate by more than this
SHIFT_SERIES = 3  # S4: for so many series in a row
MORE_TASKS = 1.0  # S9: so many runnable tasks of others above the normal, before and after
UNSURE_TASKS = 3.0  # S9: the same while the normal is still being learnt: a load that is always there varies
MORE_STEAL_PCT = 5.0  # S9: so much more of the time taken by the hypervisor
PAUSE_S = 30.0  # S9: in all, until the guard goes on with what there is; half as long each time it did
REFILL_S = 0.02  # of pauses, that each kept series earns: about a tenth of the time
CALM_SERIES = 10  # S9: the machine counts as shared until so many quiet series in a row; twice as many each time
MOST_HALVINGS = 6
LEARN_SERIES = 5  # the normal rate is the median of the first so many
WIDER = 1.5  # a state taken as normal is given this much room
FORGIVEN_SERIES = 5  # kept in a row: refusals before them count no more; steady foreign load lets one pass by chance
MOST_CREDIT = 4.0
EARNED = 0.25  # once a state was taken as normal, each kept series earns so much of a refusal: at most one in five


class State(msgspec.Struct, frozen=True):
    """What the guard holds as normal, and its streak of refusals.

    Rates are dependent additions a nanosecond (on a GPU the device clock in GHz); None: not known yet.
    """

    rate: float | None = None
    load: float | None = None
    steal_pct: float | None = None
    step: float = STEADY_STEP
    shift: float = SHIFT
    learned: tuple[float, ...] = ()  # rates of the first series since the last baseline
    loads: tuple[float, ...] = ()  # of others, of the first series; which have their ups and downs
    steals: tuple[float, ...] = ()
    former: float | None = None  # the normal rate before this one
    last: tuple[float, ...] = ()  # the two latest readings
    shifted: tuple[float, ...] = ()  # rates of the series in a row that were off by more than 2 %
    refused: tuple[tuple[str, Series], ...] = ()  # lately, with the code that refused each
    passed: int = 0  # series kept since the last of them
    mixed: bool = False  # and among them
    credit: float | None = None  # refusals that the kept series have earned; None: no state was taken as normal yet
    quiet: tuple[float | None, float | None] | None = None  # load and steal before a busy state was taken as normal
    calm: int = 0  # series in a row, since then, that the quiet normal would have let through
    purse_s: float = PAUSE_S  # that may still be spent on pauses
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


def _load_of(series: Series) -> float | None:
    """Return the tasks of others that ran on both sides of the series."""
    loads = [clock.load for clock in _clocks(series) if clock.load is not None]
    return min(loads) if len(loads) == 2 else None


def _steal_of(series: Series) -> float | None:
    return series.after.steal_pct if series.after is not None else None


def _clocks(series: Series) -> tuple[Clock, ...]:
    return tuple(clock for clock in (series.before, series.after) if clock is not None)


# -- the checks: what they saw, or None ---------------------------------------------------------------------


def _idle_or_ramp(state: State, series: Series) -> str | None:
    """S2: the clock is far below its normal, or still moving."""
    rate = rate_of(series)
    if state.rate is not None and rate is not None and rate < LOW_SHARE * state.rate:
        return f"rate {rate:.4g} additions/ns, expected {state.rate:.4g} (at least {LOW_SHARE:.0%} of it)"
    three = (state.last + rates_of(series))[-3:]
    steps = [now / before - 1.0 for before, now in itertools.pairwise(three)]
    # A little up and down again is how a busy machine reads, not how a clock moves to where it stays.
    least = state.step if steps and min(steps) * max(steps) > 0.0 else max(state.step, 1.0 - LOW_SHARE)
    if len(three) == 3 and all(abs(step) > least for step in steps):
        shown = ", ".join(f"{rate:.4g}" for rate in three)
        return f"rates {shown} additions/ns in a row, expected steady within {state.step:.1%}"
    return None


def _foreign_load(state: State, series: Series) -> str | None:
    """S9: others work on this machine during the series."""
    load = _load_of(series)
    more = MORE_TASKS if len(state.loads) >= LEARN_SERIES else UNSURE_TASKS
    if state.load is not None and load is not None and load >= state.load + more:
        return f"{load:g} runnable tasks of others, expected {state.load:g}"
    steal = _steal_of(series)
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
    """The load of others as seen in the refused series is the normal one, with its ups; the machine is shared."""
    clocks = [clock for series in seen for clock in _clocks(series)]
    loads = [clock.load for clock in clocks if clock.load is not None]
    steals = [clock.steal_pct for clock in clocks if clock.steal_pct is not None]
    return msgspec.structs.replace(
        state,
        load=max(state.load or 0.0, math.ceil(WIDER * max(loads, default=0.0))),
        steal_pct=max(state.steal_pct or 0.0, WIDER * max(steals, default=0.0)),
        quiet=state.quiet or (state.load, state.steal_pct),
        calm=0,
        given_in=state.given_in + 1,
        purse_s=_most_pause_s(state.given_in + 1),
    )


def _most_pause_s(given_in: int) -> float:
    return PAUSE_S / 2.0 ** min(given_in, MOST_HALVINGS)


class Refusal(NamedTuple):
    """A check that refuses a series, and how it takes a state that stays."""

    code: str
    name: str
    sees: Callable[[State, Series], str | None]
    adopt: Callable[[State, list[Series]], State]
    pauses: bool
    reaction: str


REFUSALS = (
    Refusal("S2", "idle or ramp", _idle_or_ramp, _adopt_rate, False, "series repeated"),
    Refusal("S9", "foreign load", _foreign_load, _adopt_load, True, "series repeated after a pause"),
)


# -- the machine ---------------------------------------------------------------------------------------------


def judge(state: State, series: Series, refusals: int) -> tuple[State, Judgement]:
    """Judge one series; after `refusals` refused lately the state seen is taken as normal and kept.

    Once that has happened a refusal must be earned by series that were kept: a state that never is the same may
    take a fifth of the run, and no more.
    """
    for check in REFUSALS:
        saw = check.sees(state, series)
        if saw is None:
            continue
        streak = (*state.refused, (check.code, series))
        if len(streak) >= refusals:
            return _give_in(state, streak, check, saw, refusals)
        if state.credit is not None and state.credit < 1.0:
            return _let_pass(state, streak, check, saw)
        return _refuse(state, streak, check, saw, refusals)
    state, judgement = _keep(state, series)
    if not state.refused:
        return state, judgement
    if state.passed + 1 >= FORGIVEN_SERIES:
        return msgspec.structs.replace(state, refused=(), passed=0, mixed=False), judgement
    return msgspec.structs.replace(state, passed=state.passed + 1, mixed=True), judgement


Streak = tuple[tuple[str, Series], ...]


def _refuse(state: State, streak: Streak, check: Refusal, saw: str, refusals: int) -> tuple[State, Judgement]:
    series = streak[-1][1]
    share = 2.0 ** (len(streak) - 1) / (2.0 ** (refusals - 1) - 1.0) if check.pauses else 0.0
    pause_s = min(share * _most_pause_s(state.given_in), state.purse_s)
    state = msgspec.structs.replace(
        state,
        refused=streak,
        passed=0,
        purse_s=state.purse_s - pause_s,
        credit=state.credit - 1.0 if state.credit is not None else None,
        last=(state.last + rates_of(series))[-2:],
    )
    reaction = check.reaction if pause_s == 0.0 else f"{check.reaction} of {pause_s:.1f} s"
    return state, Judgement(keep=False, stale=(Stale(check.code, saw, reaction),), pause_s=pause_s)


def _let_pass(state: State, streak: Streak, check: Refusal, saw: str) -> tuple[State, Judgement]:
    """Keep a series that would have been refused, and count it all the same: the state may be one that stays."""
    state, judgement = _keep(state, streak[-1][1])
    state = msgspec.structs.replace(state, refused=streak, passed=0)
    stale = Stale(check.code, saw, "kept: at most one series in five is repeated")
    return state, msgspec.structs.replace(judgement, stale=(stale, *judgement.stale))


def _give_in(state: State, streak: Streak, last: Refusal, saw: str, refusals: int) -> tuple[State, Judgement]:
    """Never a silent nothing: say who refused what and go on with the state as it is."""
    fired = {code for code, _ in streak}
    normal = state.rate
    often = f"{len(streak)} series {'among few that it kept' if state.mixed else 'in a row'}"
    for check in REFUSALS:
        if check.code in fired:
            state = check.adopt(state, [series for code, series in streak if code == check.code])
    state = msgspec.structs.replace(state, refused=(), passed=0, mixed=False, credit=state.credit or 0.0)
    moved = _moved(normal, state.rate)
    kept, judgement = _keep(state, streak[-1][1])
    notice = (
        f"guard {last.code} ({last.name}) refused {often}: {saw}; taken as normal from here"
        f"{', the machine is marked as shared' if 'S9' in fired else ''} (setting guard_refusals = {refusals})"
    )
    stale = Stale(last.code, saw, f"taken as normal after {often}", *(moved or ()))
    judgement = Judgement(
        keep=True,
        stale=(stale, *judgement.stale),
        rebaseline="S2" in fired or judgement.rebaseline,
        recalibrate=True,
        notice=notice,
    )
    return kept, judgement


def _moved(before: float | None, now: float | None) -> tuple[float, float] | None:
    """Return both normal rates where they differ by so much that times taken at one say little about the other."""
    if before is None or now is None or abs(now / before - 1.0) <= SHIFT:
        return None
    return before, now


def _keep(state: State, series: Series) -> tuple[State, Judgement]:
    """Learn the normal rate from the first series; S4 where it has moved for good."""
    rates = rates_of(series)
    if not state.shared:
        state = _learn_load(state, series)
    credit = None if state.credit is None else min(state.credit + EARNED, MOST_CREDIT)
    purse_s = min(state.purse_s + REFILL_S, _most_pause_s(state.given_in))
    state = msgspec.structs.replace(state, credit=credit, purse_s=purse_s, last=(state.last + rates)[-2:])
    state, calmed = _calm_down(state, series)
    if not rates:
        return state, Judgement(keep=True, recalibrate=calmed)
    rate = max(rates)
    if state.rate is not None and abs(rate / state.rate - 1.0) > state.shift:
        return _shift(state, rate, state.rate, calmed)
    learned = state.learned if len(state.learned) >= LEARN_SERIES else (*state.learned, rate)
    normal = state.rate if learned == state.learned else statistics.median(learned)
    state = msgspec.structs.replace(state, rate=normal, learned=learned, shifted=())
    return state, Judgement(keep=True, recalibrate=calmed)


def _learn_load(state: State, series: Series) -> State:
    """What others do while the first series are taken is normal, ups and downs included, but for one spike."""
    load, steal = _load_of(series), _steal_of(series)
    if load is not None and len(state.loads) < LEARN_SERIES:
        loads = (*state.loads, load)
        state = msgspec.structs.replace(state, loads=loads, load=_largest_but_one(loads))
    if steal is not None and len(state.steals) < LEARN_SERIES:
        steals = (*state.steals, steal)
        state = msgspec.structs.replace(state, steals=steals, steal_pct=_largest_but_one(steals))
    return state


def _largest_but_one(values: tuple[float, ...]) -> float:
    return sorted(values)[-2:][0]


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
    """Count the series whose rate is off; the third in a row makes theirs the normal one.

    A clock that is back at its former normal is one that wanders between the two: both are normal from then on.
    """
    shifted = (*state.shifted, rate)
    if len(shifted) < SHIFT_SERIES:
        return msgspec.structs.replace(state, shifted=shifted), Judgement(keep=True, recalibrate=calmed)
    now = statistics.median(shifted)
    wanders = state.former is not None and abs(now / state.former - 1.0) <= SHIFT
    saw = f"rate {now:.4g} additions/ns for {len(shifted)} series, expected {normal:.4g}"
    state = msgspec.structs.replace(
        state,
        rate=now,
        former=normal,
        learned=shifted,
        shifted=(),
        shift=max(state.shift, WIDER * abs(now / normal - 1.0)) if wanders else state.shift,
    )
    reaction = "new normal rate; the incumbent's time is refreshed, paired decisions stay valid"
    stale = Stale("S4", saw, reaction, normal, now)
    return state, Judgement(keep=True, stale=(stale,), rebaseline=True, recalibrate=calmed)
