"""Step 11: counters of a candidate from its time, its build and the problem's own work (no profiler on ``c``)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from cake_tui.ir.work import work
from cake_tui.model.device import Device
from cake_tui.model.facts import Profile, StaticFacts
from cake_tui.model.measure import Series
from cake_tui.model.outcome import Measured, Outcome
from cake_tui.model.problem import Problem
from cake_tui.steps.context import Attempt


def counters(
    problem: Problem,
    device: Device,
    time_us: float | None,
    facts: StaticFacts | None = None,
    imbalance_pct: float | None = None,
) -> Profile:
    """Return what is known of a candidate without a profiler; `time_us` None where it was never timed.

    Memory throughput is the least traffic over the time against the memory's peak; `sm_busy_pct` the least
    arithmetic against the arithmetic peak of all cores. Neither exists where the device's peak is unknown.
    """
    least = work(problem)
    memory = _share(least.bytes_moved, time_us, device.memory_gbps)
    busy = _share(least.flops, time_us, device.peak_gflops)
    facts = facts or StaticFacts()
    counted = [moves for moves in (facts.spill_stores, facts.spill_loads) if moves is not None]
    return Profile(
        source="static" if memory is None and busy is None else "static+model",
        memory_throughput_pct=memory,
        sm_busy_pct=busy,
        regs_per_thread=facts.registers,
        max_smem_limit=device.smem_per_block_bytes or None,
        vector_share=facts.vector_share,
        spills=sum(counted) if counted else None,
        bytes_moved=least.bytes_moved,
        flops=least.flops,
        imbalance_pct=imbalance_pct,
    )


def profile(problem: Problem, device: Device, attempt: Attempt, outcome: Outcome) -> Profile:
    """Return the profile of a candidate that got as far as `attempt`; without a time, what the build tells."""
    facts = attempt.binaries.full_reply.facts if attempt.binaries is not None else None
    series = attempt.coarse.series if attempt.coarse is not None else ()
    return counters(problem, device, time_of(outcome), facts, imbalance_pct(series))


def time_of(outcome: Outcome) -> float | None:
    """Return the measured time, microseconds; None for every other outcome."""
    return outcome.avg_us if isinstance(outcome, Measured) and outcome.avg_us > 0.0 else None


def imbalance_pct(series: Sequence[Series]) -> float | None:
    """Return the median imbalance of the pool over some series, percent; None where none was measured."""
    found = [one.imbalance_pct for one in series if one.imbalance_pct is not None]
    return statistics.median(found) if found else None


def _share(amount: float | None, time_us: float | None, peak_giga: float | None) -> float | None:
    """Amount a run over time against a peak in 1e9 a second, percent."""
    if amount is None or not time_us or not peak_giga:
        return None
    return 100.0 * amount / time_us / 1e3 / peak_giga
