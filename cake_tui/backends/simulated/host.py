"""The evaluator's side: endings that really happen, and times drawn around the surface by simulated clocks."""

from __future__ import annotations

import math
import os
import random
import signal
import time

from cake_tui.backends.simulated.options import Options
from cake_tui.backends.simulated.surfaces import unit
from cake_tui.model.facts import Agreement
from cake_tui.model.jobs import (
    Check,
    Checked,
    EvaluatorJob,
    EvaluatorReply,
    Refused,
    SelfTest,
    SelfTested,
    Subject,
    Timed,
    TimePairs,
    TimePeer,
)
from cake_tui.model.lowered import Lowered
from cake_tui.model.measure import Clock, Pair, Series
from cake_tui.model.outcome import LaunchFailed, WrongAnswer
from cake_tui.model.problem import Problem, Shape
from cake_tui.model.schedule import Schedule

REFERENCE_VOLUME = 512.0**3  # the surfaces' times are meant for this product of sizes
PEER_US = (1400.0, 2400.0)  # a peer's true time at that volume lies between
LAST_WORD = b'{"last_word":"simulated: a run outlived its limit","timed_out":true}\n'
RATE = 3.0  # dependent additions a nanosecond, of the simulated clock


def schedule_of(lowered: Lowered) -> Schedule:
    """Return the schedule as the lowered value shows it: structure and constants under the knobs' names."""
    return Schedule.of(lowered.structure, {name.lower(): value for name, value in lowered.constants})


class SimulatedHost:
    """Answers the jobs of one evaluator; nothing is computed, checked or timed, and the replies say so."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._words_fd = -1

    def watch_faults(self, fd: int) -> None:
        """Take the descriptor for the last word of a process that hangs."""
        self._words_fd = fd

    def handle(self, job: EvaluatorJob) -> EvaluatorReply:
        """Answer one job; a `Crashed` schedule kills this process, a `TimedOut` one hangs for `run_limit_s`."""
        if isinstance(job, Check):
            return self._check(job)
        if isinstance(job, TimePairs):
            return self._time(job)
        if isinstance(job, TimePeer):
            return self._time_peer(job)
        return _self_test(job)

    def close(self) -> None:
        """Nothing is held."""

    def _check(self, job: Check) -> Checked | Refused:
        started = time.monotonic()
        time.sleep(self._options.check_s)
        schedule = schedule_of(job.subject.lowered)
        ending = self._options.ending(schedule)
        if ending == "Crashed":
            signal.raise_signal(signal.SIGSEGV)  # in this thread: not a line more is run
        if ending == "TimedOut":
            _hang(job.run_limit_s, self._words_fd)
        if ending == "LaunchFailed":
            reason = f"simulated: {schedule.structure} asks for more threads than the surface allows"
            return Refused(LaunchFailed(reason=reason, limit="threads", asked=2048, available=1024, unit="threads"))
        share = unit(self._options.surface, schedule.text, "error")
        if ending == "WrongAnswer":
            return Refused(_wrong(job.problem, share))
        agreement = Agreement(
            max_abs_err=1e-6 * (1.0 + 4.0 * share),
            rel_err=1e-6 * (1.0 + share),
            worst_unit=5.0 + 40.0 * share,
            bound_share=0.02 + 0.25 * share,
            input_sets=("simulated",),
            shapes=tuple(plan.shape.text for plan in job.subject.lowered.plans),
        )
        return Checked(agreement, time.monotonic() - started)

    def _time(self, job: TimePairs) -> Timed:
        time.sleep(self._options.series_s)
        holder = self._true_us(job.holder, job.problem)
        candidate = self._true_us(job.candidate, job.problem)
        words = (schedule_of(job.holder.lowered).text, schedule_of(job.candidate.lowered).text)
        return Timed(self._series(job, holder, candidate, words))

    def _time_peer(self, job: TimePeer) -> Timed:
        time.sleep(self._options.series_s)
        low, high = PEER_US
        peer = low + (high - low) * unit(self._options.surface, job.peer)
        peer *= job.problem.ranked([_size_factor(shape) for shape in job.problem.shapes])
        holder = self._true_us(job.holder, job.problem)
        words = (schedule_of(job.holder.lowered).text, job.peer)
        return Timed(self._series(job, holder, peer, words), peer_threads=1, peer_version="simulated")

    def _true_us(self, subject: Subject, problem: Problem) -> float:
        base = self._options.time_us(schedule_of(subject.lowered))
        if self._options.flat_us > 0:
            return base
        return problem.ranked([base * _size_factor(shape) for shape in problem.shapes])

    def _series(
        self, job: TimePairs | TimePeer, holder_us: float, candidate_us: float, words: tuple[str, str]
    ) -> Series:
        """Draw ABBA pairs: drift is an Ornstein-Uhlenbeck process that both arms share, the rest is each sample's."""
        noise, options = self._options.place.noise, self._options
        rng = random.Random("\0".join((options.uuid, str(job.seed), *words)))
        white, drift_sd = noise.white * options.noise, noise.drift * options.drift
        step_s = max(job.sample_ms * 1e-3, max(holder_us, candidate_us) * 1e-6)
        keep = math.exp(-step_s / noise.drift_tau_s)
        drift = rng.gauss(0.0, drift_sd)
        start = drift
        placement = [rng.gauss(0.0, noise.placement * options.noise) for _ in range(2)]

        def sample(true_us: float, arm: int) -> float:
            nonlocal drift
            drift = keep * drift + math.sqrt(1.0 - keep * keep) * rng.gauss(0.0, drift_sd)
            spike = noise.spike * options.noise if rng.random() < noise.spike_share else 0.0
            return true_us * math.exp(drift + placement[arm] + rng.gauss(0.0, white)) * (1.0 + spike)

        pairs = []
        for index in range(job.pairs):
            if index % 2 == 0:
                first = sample(holder_us, 0)
                pairs.append(Pair(first, sample(candidate_us, 1), holder_first=True))
            else:
                first = sample(candidate_us, 1)
                pairs.append(Pair(sample(holder_us, 0), first, holder_first=False))
        mono = time.monotonic()
        return Series(
            tuple(pairs),
            before=Clock(mono, rate=RATE * math.exp(-start), load=0.0, steal_pct=0.0),
            after=Clock(mono, rate=RATE * math.exp(-drift), load=0.0, steal_pct=0.0),
        )


def _size_factor(shape: Shape) -> float:
    volume = math.prod(size for _, size in shape.sizes)
    return min(1e3, max(1e-3, volume / REFERENCE_VOLUME))


def _self_test(job: SelfTest) -> SelfTested:
    cases = (("simulated: nothing is computed, nothing is checked", 0.0, "accepted", "accepted"),)
    return SelfTested(True, cases, max_abs_output=1.0, nonzero_share=1.0, tolerance=job.problem.tolerance_abs)


def _wrong(problem: Problem, share: float) -> WrongAnswer:
    elements = 4096
    error = problem.tolerance_abs * (2.0 + 100.0 * share)
    return WrongAnswer(
        reason="simulated: the surface lets this schedule be wrong",
        failure="bound",
        input_set="simulated",
        shape=problem.shapes[0].text,
        bad_elements=1 + int(share * elements),
        elements=elements,
        first_index=(0, 0),
        expected=1.0,
        found=f"{1.0 + error:.9g}",
        max_abs_err=error,
        worst_unit=error * 2.0**24,
    )


def _hang(limit_s: float, words_fd: int) -> None:
    """Hang as a kernel does that waits for a flag nobody sets; hosted, the evaluator's own watchdog ends it."""
    if words_fd < 0:
        while True:
            time.sleep(3600.0)
    time.sleep(limit_s)
    os.write(words_fd, LAST_WORD)
    os._exit(124)
