"""Stale clocks: which series to believe, judged from the readings right before and right after each.

A pure state machine over readings, one table of checks by code. On the CPU S2, S4 and S9; on a GPU all ten, where
`gpu_clock` says what the device and NVML saw.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from cake_tui.model.measure import Series, Stale
from cake_tui.steps import gpu_clock
from cake_tui.steps.normal import (
    CALM_SERIES,
    PAUSE_S,
    SHIFT,
    SHIFT_SERIES,
    Judgement,
    State,
    rate_of,
    rates_of,
    unit,
)
from cake_tui.steps.standing import observe

LOW_SHARE = 0.90  # S2: below this share of the normal rate
MORE_TASKS = 1.0  # S9: so many runnable tasks of others above the normal, before and after
UNSURE_TASKS = 3.0  # S9: the same while the normal is still being learnt: a load that is always there varies
MORE_STEAL_PCT = 5.0  # S9: so much more of the time taken by the hypervisor
REFILL_S = 0.02  # of pauses, that each kept series earns: about a tenth of the time
MOST_HALVINGS = 6
COOL_S = 180.0  # S5: in all, until the guard goes on with a hot device
UNLIKE_REPEATS = 3  # S3: so often a match, then it is the candidate itself that moves the clock
MORE_BYTES = 64e6  # S9: so much more device memory held by others
LEARN_SERIES = 5  # the normal rate is the median of the first so many
WIDER = 1.5  # a state taken as normal is given this much room
FORGIVEN_SERIES = 5  # kept in a row: refusals before them count no more; steady foreign load lets one pass by chance
MOST_CREDIT = 4.0
EARNED = 0.25  # once a state was taken as normal, each kept series earns so much of a refusal: at most one in five


def _load_of(series: Series) -> float | None:
    """Return the tasks of others that ran on both sides of the series."""
    loads = [clock.load for clock in gpu_clock.clocks_of(series) if clock.load is not None]
    return min(loads) if len(loads) == 2 else None


def _steal_of(series: Series) -> float | None:
    return series.after.steal_pct if series.after is not None else None


# -- the checks: what they saw, or None ---------------------------------------------------------------------


def _idle_or_ramp(state: State, series: Series) -> str | None:
    """S2: the clock is far below its normal, or still moving."""
    rate = rate_of(series)
    if state.rate is not None and rate is not None and rate < LOW_SHARE * state.rate:
        return f"rate {rate:.4g} {unit(series)}, expected {state.rate:.4g} (at least {LOW_SHARE:.0%} of it)"
    three = (state.last + rates_of(series))[-3:]
    steps = [now / before - 1.0 for before, now in itertools.pairwise(three)]
    # A little up and down again is how a busy machine reads, not how a clock moves to where it stays.
    least = state.step if steps and min(steps) * max(steps) > 0.0 else max(state.step, 1.0 - LOW_SHARE)
    if len(three) == 3 and all(abs(step) > least for step in steps):
        shown = ", ".join(f"{rate:.4g}" for rate in three)
        return f"rates {shown} {unit(series)} in a row, expected steady within {state.step:.1%}"
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
    return _foreign_processes(state, series)


def _foreign_processes(state: State, series: Series) -> str | None:
    """S9 on a GPU: more processes of others on the device than there were, or they took more of its memory."""
    count, held = _foreign_of(series)
    if state.foreign is not None and count is not None and count > state.foreign:
        return f"{count:g} processes of others on the device, expected {state.foreign:g}"
    if state.foreign_bytes is not None and held is not None and held > state.foreign_bytes + MORE_BYTES:
        return f"others hold {held / 1e9:.2f} GB of the device's memory, expected {state.foreign_bytes / 1e9:.2f}"
    return None


def _foreign_of(series: Series) -> tuple[float | None, float | None]:
    """Processes of others and the memory they hold, the most that was seen around the series."""
    clocks = gpu_clock.clocks_of(series)
    counts = [float(clock.foreign_processes) for clock in clocks if clock.foreign_processes is not None]
    held = [clock.foreign_bytes for clock in clocks if clock.foreign_bytes is not None]
    return max(counts, default=None), max(held, default=None)


def _heat(state: State, series: Series) -> str | None:
    """S5: the device was held back by heat or the hardware during the series."""
    return None if state.hot else gpu_clock.throttled(series)


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
    clocks = [clock for series in seen for clock in gpu_clock.clocks_of(series)]
    counts, held = zip(*(_foreign_of(series) for series in seen))
    loads = [clock.load for clock in clocks if clock.load is not None]
    steals = [clock.steal_pct for clock in clocks if clock.steal_pct is not None]
    return msgspec.structs.replace(
        state,
        load=max(state.load or 0.0, math.ceil(WIDER * max(loads, default=0.0))),
        steal_pct=max(state.steal_pct or 0.0, WIDER * max(steals, default=0.0)),
        foreign=max((count for count in (*counts, state.foreign) if count is not None), default=None),
        foreign_bytes=max((size for size in (*held, state.foreign_bytes) if size is not None), default=None),
        quiet=state.quiet or (state.load, state.steal_pct, state.foreign, state.foreign_bytes),
        calm=0,
        given_in=state.given_in + 1,
        purse_s=_most_pause_s(state.given_in + 1),
    )


def _adopt_heat(state: State, seen: list[Series]) -> State:
    """Nobody cools the device down: measure it as it is."""
    return msgspec.structs.replace(state, hot=True, heated=state.heated + 1, cool=0)


def _most_pause_s(given_in: int) -> float:
    return PAUSE_S / 2.0 ** min(given_in, MOST_HALVINGS)


def _pause_s(state: State, check: Refusal, share: float) -> float:
    """How long to wait now, where `share` of all that a check may wait falls to this refusal."""
    if check.code == "S5":
        return share * COOL_S / 2.0 ** min(state.heated, MOST_HALVINGS)
    return min(share * _most_pause_s(state.given_in), state.purse_s) if check.pauses else 0.0


class Refusal(NamedTuple):
    """A check that refuses a series, and how it takes a state that stays."""

    code: str
    name: str
    sees: Callable[[State, Series], str | None]
    adopt: Callable[[State, list[Series]], State]
    pauses: bool
    reaction: str


REFUSALS = (
    Refusal("S5", "heat or hardware", _heat, _adopt_heat, True, "series dropped, cooling down for"),
    Refusal("S2", "idle or ramp", _idle_or_ramp, _adopt_rate, False, "series repeated"),
    Refusal("S9", "foreign load", _foreign_load, _adopt_load, True, "series repeated after a pause of"),
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
    off = gpu_clock.unlike(series)
    if off is not None and state.unlike < UNLIKE_REPEATS:
        first = Stale("S3", f"the clock ran {off:+.2%} for the candidate", f"repeated, {UNLIKE_REPEATS} times at most")
        stale = (first,) if state.unlike == 0 else ()
        return msgspec.structs.replace(state, unlike=state.unlike + 1), Judgement(keep=False, stale=stale)
    state, judgement = _keep(state, series)
    if not state.refused:
        return state, judgement
    if state.passed + 1 >= FORGIVEN_SERIES:
        return msgspec.structs.replace(state, refused=(), passed=0, mixed=False), judgement
    return msgspec.structs.replace(state, passed=state.passed + 1, mixed=True), judgement


Streak = tuple[tuple[str, Series], ...]


def _refuse(state: State, streak: Streak, check: Refusal, saw: str, refusals: int) -> tuple[State, Judgement]:
    series = streak[-1][1]
    pause_s = _pause_s(state, check, 2.0 ** (len(streak) - 1) / (2.0 ** (refusals - 1) - 1.0))
    state = msgspec.structs.replace(
        state,
        refused=streak,
        passed=0,
        purse_s=state.purse_s - (pause_s if check.code == "S9" else 0.0),
        credit=state.credit - 1.0 if state.credit is not None else None,
        last=(state.last + rates_of(series))[-2:],
    )
    reaction = f"{check.reaction} {pause_s:.1f} s" if check.pauses else check.reaction
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
    judgement = msgspec.structs.replace(
        judgement,
        stale=(stale, *judgement.stale),
        rebaseline="S2" in fired or judgement.rebaseline,
        recalibrate=True,
        notice="; ".join(one for one in (notice, judgement.notice) if one),
    )
    return kept, judgement


def _moved(before: float | None, now: float | None) -> tuple[float, float] | None:
    """Return both normal rates where they differ by so much that times taken at one say little about the other."""
    if before is None or now is None or abs(now / before - 1.0) <= SHIFT:
        return None
    return before, now


def _keep(state: State, series: Series) -> tuple[State, Judgement]:
    """Learn what is normal from the first series, note what holds, and see where a clock has moved for good."""
    rates = rates_of(series)
    if not state.shared:
        state = _learn_load(state, series)
    credit = None if state.credit is None else min(state.credit + EARNED, MOST_CREDIT)
    purse_s = min(state.purse_s + REFILL_S, _most_pause_s(state.given_in))
    state = msgspec.structs.replace(state, credit=credit, purse_s=purse_s, last=(state.last + rates)[-2:])
    state, calmed = _calm_down(state, series)
    state, seen = observe(state, series)
    state, moved = _see_rate(state, series)
    return state, Judgement(
        keep=True,
        stale=moved.stale + seen.stale,
        rebaseline=moved.rebaseline or seen.rebaseline,
        recalibrate=moved.recalibrate or seen.recalibrate or calmed,
        notice=seen.notice,
        flags=seen.flags,
        label=seen.label,
    )


def _see_rate(state: State, series: Series) -> tuple[State, Judgement]:
    """Learn the normal rate from the first series; S4 where it has moved for good."""
    rate = rate_of(series)
    if rate is None:
        return state, Judgement(keep=True)
    if state.rate is not None and abs(rate / state.rate - 1.0) > state.shift:
        return _shift(state, rate, state.rate, unit(series))
    learned = state.learned if len(state.learned) >= LEARN_SERIES else (*state.learned, rate)
    normal = state.rate if learned == state.learned else statistics.median(learned)
    return msgspec.structs.replace(state, rate=normal, learned=learned, shifted=()), Judgement(keep=True)


def _learn_load(state: State, series: Series) -> State:
    """What others do while the first series are taken is normal, ups and downs included, but for one spike."""
    load, steal = _load_of(series), _steal_of(series)
    if load is not None and len(state.loads) < LEARN_SERIES:
        loads = (*state.loads, load)
        state = msgspec.structs.replace(state, loads=loads, load=_largest_but_one(loads))
    if steal is not None and len(state.steals) < LEARN_SERIES:
        steals = (*state.steals, steal)
        state = msgspec.structs.replace(state, steals=steals, steal_pct=_largest_but_one(steals))
    count, held = _foreign_of(series)
    # Who was there from the start is normal, and who leaves is not missed.
    fewest = count if state.foreign is None or count is None else min(count, state.foreign)
    least = held if state.foreign_bytes is None or held is None else min(held, state.foreign_bytes)
    return msgspec.structs.replace(
        state,
        foreign=state.foreign if fewest is None else fewest,
        foreign_bytes=state.foreign_bytes if least is None else least,
    )


def _largest_but_one(values: tuple[float, ...]) -> float:
    return sorted(values)[-2:][0]


def _calm_down(state: State, series: Series) -> tuple[State, bool]:
    """Return to the quiet normal when the others have been gone for a while; the second value says that they have."""
    if state.quiet is None:
        return state, False
    load, steal_pct, foreign, held = state.quiet
    quiet = msgspec.structs.replace(state, load=load, steal_pct=steal_pct, foreign=foreign, foreign_bytes=held)
    calm = state.calm + 1 if _foreign_load(quiet, series) is None else 0
    if calm < CALM_SERIES * 2 ** min(state.given_in - 1, MOST_HALVINGS):
        return msgspec.structs.replace(state, calm=calm), False
    return msgspec.structs.replace(quiet, quiet=None, calm=0), True


def _shift(state: State, rate: float, normal: float, unit: str) -> tuple[State, Judgement]:
    """Count the series whose rate is off; the third in a row makes theirs the normal one.

    A clock that is back at its former normal is one that wanders between the two: both are normal from then on.
    """
    shifted = (*state.shifted, rate)
    if len(shifted) < SHIFT_SERIES:
        return msgspec.structs.replace(state, shifted=shifted), Judgement(keep=True)
    now = statistics.median(shifted)
    wanders = state.former is not None and abs(now / state.former - 1.0) <= SHIFT
    saw = f"rate {now:.4g} {unit} for {len(shifted)} series, expected {normal:.4g}"
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
    return state, Judgement(keep=True, stale=(stale,), rebaseline=True)
