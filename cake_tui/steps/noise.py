"""Noise: the guard around every series, and the gate tried on a kernel against itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from typing import Protocol

import msgspec

from cake_tui.config import Gating
from cake_tui.model import event as ev
from cake_tui.model.measure import Clock, GateResult, Series, Stale
from cake_tui.steps import normal, stale
from cake_tui.steps.gate import gate
from cake_tui.steps.measure import Ask, Calibration, Take, answer, ask_noise, holder_us

DOUBLED = 2.0
PAUSE_SLICE_S = 0.05
DISTURBING = {"S2", "S5", "S9"}  # codes under which a result that was left open may be tried again

Say = Callable[[str], None]
"""Shows people what is waited for, at once; an empty text takes it away."""

Rest = Callable[[float, Callable[[], None] | None], None]
"""Waits so many seconds, calling the second argument meanwhile."""


class Reader(Protocol):
    """Reads load and steal of the machine; the monitors do."""

    def read(self) -> Clock:
        """Take one reading now."""


class SelfGate(msgspec.Struct, frozen=True):
    """What the gate made of a kernel compared with itself so often; `accepted` are the false ones."""

    comparisons: int
    accepted: int
    rejected: int
    undecided: int
    noisy: int
    series: int
    pair_noise: float


def calibrate(take: Take) -> Calibration:
    """Measure the pair noise with self-pairs: `take` times one kernel against itself."""
    return answer(ask_noise(), take)


def compare_with_itself(settings: Gating, take: Take, comparisons: int) -> Iterator[SelfGate]:
    """Gate one kernel against itself `comparisons` times and yield the running totals after each.

    The pair noise is calibrated first, as in a session. Every comparison takes its own coarse measurement.
    """
    noise = calibrate(take).pair_noise
    counts = {"accept": 0, "reject": 0, "undecided": 0, "noisy": 0}
    series = 0
    for number in range(1, comparisons + 1):
        result = answer(gate(settings, noise, None), take)
        counts[result.decision] += 1
        series += result.series
        yield SelfGate(
            number, counts["accept"], counts["reject"], counts["undecided"], counts["noisy"], series, noise
        )  # fmt: skip


def rest(seconds: float, wait: Callable[[], None] | None) -> None:
    """Sleep in slices, so that requests are looked at meanwhile; what `wait` raises ends it."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0.0:
        time.sleep(min(left, PAUSE_SLICE_S))
        if wait is not None:
            wait()


class Guard:
    """Takes series again that were measured under stale clocks, and keeps what it did until it is journaled.

    `refusals` in a row make it take the state that it sees as normal. `monitor` adds load, steal and
    temperature to the clocks of each series where the evaluator did not read them. What happened is journaled
    after the measurement; `say` shows meanwhile why it takes so long.
    """

    def __init__(
        self, refusals: int = 5, monitor: Reader | None = None, rest: Rest = rest, say: Say = lambda _: None
    ) -> None:
        self.refusals = refusals
        self.calibration_due = False  # the pair noise of before does not hold; set to False when it was taken
        self._monitor = monitor
        self._rest = rest
        self._say = say
        self._state = normal.State()
        self._fired: list[Stale] = []
        self._flags: list[str] = []
        self._labels: list[str] = []
        self._notices: list[str] = []
        self._rebaselined: Series | None = None

    @property
    def state(self) -> normal.State:
        """What counts as normal now."""
        return self._state

    @property
    def shared(self) -> bool:
        """Others use the machine, and the guard has gone on all the same."""
        return self._state.shared

    @property
    def codes(self) -> tuple[str, ...]:
        """Codes that fired or held since the last `events`, each once."""
        return tuple(dict.fromkeys([*(one.code for one in self._fired), *self._flags]))

    def watched(self, take: Take, wait: Callable[[], None] | None = None) -> Take:
        """Return a `take` for one match that gives only series to believe; `wait` is called every 50 ms of a pause."""
        self._state = msgspec.structs.replace(self._state, unlike=0)

        def guarded(ask: Ask) -> Series:
            while True:
                series = self._read_around(take, ask)
                if self.judge(series, wait):
                    return series

        return guarded

    def judge(self, series: Series, wait: Callable[[], None] | None = None) -> bool:
        """Say whether to keep the series; rests as long as the reaction asks for."""
        self._state, judgement = stale.judge(self._state, series, self.refusals)
        self._fired += judgement.stale
        self._flags += [code for code in judgement.flags if code not in self._flags]
        if judgement.label and judgement.label not in self._labels:
            self._labels.append(judgement.label)
        if judgement.notice:
            self._notices.append(judgement.notice)
        if judgement.rebaseline:
            self._rebaselined = series
        self.calibration_due |= judgement.recalibrate
        if judgement.pause_s > 0.0:
            seen = "; ".join(f"{one.code}: {one.saw}" for one in judgement.stale)
            self._say(f"waiting {judgement.pause_s:.1f} s for a steady machine: {seen}")
            try:
                self._rest(judgement.pause_s, wait)
            finally:
                self._say("")
        return judgement.keep

    def calibrated(self, before: float | None, now: float) -> None:
        """Compare two pair noises of one kernel: noise that doubled is foreign load (S9), gone on with."""
        self.calibration_due = False
        if before is not None and now >= DOUBLED * before:
            saw = f"pair noise {now:.2%}, before {before:.2%}"
            self._fired.append(Stale("S9", saw, "gone on with the larger pair noise"))

    def forget(self) -> None:
        """After a gap or on another machine nothing that was normal counts: learn it anew."""
        self._state = normal.State()

    def mark(self, result: GateResult) -> GateResult:
        """Put the codes that fired into the gate's result; one left open under a stale clock is `noisy`."""
        codes = self.codes
        if self._labels:
            result = msgspec.structs.replace(result, reason=f"{result.reason}; {'; '.join(self._labels[-2:])}")
        if result.decision == "undecided" and DISTURBING & set(codes):
            reason = f"{result.reason}; stale clocks: {', '.join(codes)}"
            return msgspec.structs.replace(result, stale_codes=codes, decision="noisy", reason=reason)
        return msgspec.structs.replace(result, stale_codes=codes)

    def events(self, candidate: int | None, holder: int | None = None) -> Generator[ev.Event, None, None]:
        """Give what happened since the last call, to be journaled; a new normal clock re-times the `holder`."""
        fired, self._fired = self._fired, []
        self._flags, self._labels = [], []
        notices, self._notices = self._notices, []
        series, self._rebaselined = self._rebaselined, None
        for one in fired:
            yield ev.GuardFired(candidate=candidate, stale=one)
        for text in notices:
            yield ev.Noticed(level="warning", text=text)
        if series is not None and holder is not None:
            yield ev.IncumbentTimed(candidate=holder, avg_us=holder_us([series]))

    def _read_around(self, take: Take, ask: Ask) -> Series:
        if self._monitor is None:
            return take(ask)
        before = self._monitor.read()
        series = take(ask)
        after = self._monitor.read()
        return msgspec.structs.replace(
            series, before=_filled(series.before, before), after=_filled(series.after, after)
        )


def _filled(clock: Clock | None, reading: Clock) -> Clock:
    """Lay the evaluator's clock over the monitor's reading: what it knows itself is nearer to the series."""
    if clock is None:
        return reading
    own = {name: value for name, value in msgspec.structs.asdict(clock).items() if value not in (None, ())}
    return msgspec.structs.replace(reading, **own)
