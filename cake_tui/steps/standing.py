"""What is on record about a series that is kept: codes that hold without refusing, labels, the device's health.

Such a code is journaled when it begins, and again only after it was gone for a while; every result that was measured
while it held carries it all the same.
"""

from __future__ import annotations

import statistics

import msgspec

from cake_tui.model.measure import Series, Stale
from cake_tui.steps import gpu_clock
from cake_tui.steps.normal import CALM_SERIES, SHIFT_SERIES, Judgement, State

MEMORY_SHIFT = 0.01  # S8: the memory clock is off by more than this


def observe(state: State, series: Series) -> tuple[State, Judgement]:
    """What is on record about a series that is kept: codes that hold are journaled when they begin, not each time."""
    stale = list(gpu_clock.standing(series, state.had_reading))
    off, label = gpu_clock.unlike(series), ""
    if off is not None:
        label = f"power-limited, clock differs {off:+.2%}"
        stale.append(Stale("S3", f"the clock ran {off:+.2%} for the candidate", f"kept by wall time: {label}"))
    if state.hot and (saw := gpu_clock.throttled(series)) is not None:
        stale.append(Stale("S5", saw, "kept: the device stays as it is"))
        state = msgspec.structs.replace(state, cool=0)
    elif state.hot:
        cool = state.cool + 1
        state = msgspec.structs.replace(state, hot=cool < CALM_SERIES, cool=cool)
    broken = gpu_clock.broken(series)
    news = [one for one in broken if one not in state.broken]
    known = dict(state.standing)
    begun = tuple(one for one in stale if one.code not in known)
    now = {one.code: 0 for one in stale}
    ages = {code: now.get(code, known.get(code, 0) + 1) for code in (*known, *now)}
    state = msgspec.structs.replace(
        state,
        standing=tuple((code, age) for code, age in ages.items() if age < CALM_SERIES),
        had_reading=state.had_reading or gpu_clock.has_reading(series),
        broken=broken or state.broken,
    )
    state, moved = _see_memory(state, series)
    notice = f"the device says: {'; '.join(news)}; results may be wrong (nvidia-smi -q)" if news else ""
    flags = tuple(dict.fromkeys(one.code for one in stale))
    return state, Judgement(
        keep=True, stale=begun + moved, rebaseline=bool(moved), notice=notice, flags=flags, label=label
    )


def _see_memory(state: State, series: Series) -> tuple[State, tuple[Stale, ...]]:
    """S8: the memory clock has another value than it had, three series in a row."""
    found, normal = gpu_clock.memory_mhz(series), state.memory_mhz
    if found is None or normal is None or abs(found / normal - 1.0) <= MEMORY_SHIFT:
        return msgspec.structs.replace(state, memory_mhz=normal or found, memory_shifted=()), ()
    shifted = (*state.memory_shifted, found)
    if len(shifted) < SHIFT_SERIES:
        return msgspec.structs.replace(state, memory_shifted=shifted), ()
    now = statistics.median(shifted)
    state = msgspec.structs.replace(state, memory_mhz=now, memory_shifted=())
    saw = f"memory clock {now:g} MHz for {len(shifted)} series, expected {normal:g}"
    return state, (Stale("S8", saw, "new normal memory clock; the incumbent's time is refreshed"),)
