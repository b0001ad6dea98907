"""Step 11: counters of a candidate from its time, its build and the problem's own work, and a profiler's laid over."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import msgspec

from cake_tui.ir.work import work
from cake_tui.model.device import Device
from cake_tui.model.facts import Profile, StaticFacts
from cake_tui.model.lowered import LaunchPlan
from cake_tui.model.measure import Series
from cake_tui.model.outcome import Measured, Outcome
from cake_tui.model.problem import Problem
from cake_tui.steps import occupancy
from cake_tui.steps.build import Binaries
from cake_tui.steps.context import Attempt


def counters(
    problem: Problem,
    device: Device,
    time_us: float | None,
    facts: StaticFacts | None = None,
    imbalance_pct: float | None = None,
    plan: LaunchPlan | None = None,
) -> Profile:
    """Return what is known of a candidate without a profiler; `time_us` None where it was never timed.

    `plan` says how a GPU's kernel is launched.

    Memory throughput is the least traffic over the time against the memory's peak; `sm_busy_pct` the least
    arithmetic against the arithmetic peak of all cores. Neither exists where the device's peak is unknown.
    """
    least = work(problem)
    memory = _share(least.bytes_moved, time_us, device.memory_gbps)
    busy = _share(least.flops, time_us, device.peak_gflops)
    facts = facts or StaticFacts()
    counted = [moves for moves in (facts.spill_stores, facts.spill_loads) if moves is not None]
    launches = plan.launches if plan is not None and device.target == "cuda" else ()
    launch = occupancy.single(plan) if plan is not None and launches else None
    fit = occupancy.fit(launch, device, facts) if launch is not None else None
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
        max_dynamic_smem_bytes=max((one.smem_bytes for one in launches), default=None),
        smem_static_bytes=facts.smem_static_bytes if launches else None,
        blocks=None if launch is None else math.prod(launch.grid),
        threads=None if launch is None else math.prod(launch.block),
        occupancy_limit_pct=None if fit is None else fit.occupancy_pct,
        occupancy_limiter=None if fit is None else fit.limiter,
        waves=None if fit is None or not fit.blocks_per_sm else fit.waves,
    )


def overlaid(static: Profile, counted: Profile) -> Profile:
    """Lay a profiler's counters over what is known without one: what it did not count stays."""
    known = {name: value for name, value in msgspec.structs.asdict(counted).items() if value not in (None, ())}
    return msgspec.structs.replace(static, **known)


def profile(problem: Problem, device: Device, attempt: Attempt, outcome: Outcome) -> Profile:
    """Return the profile of a candidate that got as far as `attempt`; without a time, what the build tells."""
    series = attempt.coarse.series if attempt.coarse is not None else ()
    if attempt.binaries is None:
        return counters(problem, device, time_of(outcome), None, imbalance_pct(series))
    return of_build(problem, device, attempt.binaries, time_of(outcome), imbalance_pct(series))


def of_build(
    problem: Problem, device: Device, built: Binaries, time_us: float | None, imbalance: float | None = None
) -> Profile:
    """Return the counters of a candidate that was built."""
    plans = [plan for plan in built.full.lowered.plans if plan.shape == problem.shapes[-1]]
    return counters(problem, device, time_us, built.full_reply.facts, imbalance, plans[0] if plans else None)


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
