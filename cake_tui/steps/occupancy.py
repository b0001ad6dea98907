"""Theoretical occupancy: how many blocks of a launch fit on a multiprocessor at a time, and what keeps more away.

The rules are those of NVIDIA's occupancy calculator (CUDA C++ Programming Guide, compute capabilities): registers are
given to a warp in units of 256 and warps in fours, shared memory in units of 128 bytes with 1 KiB of the system's.
"""

from __future__ import annotations

import math

import msgspec

from cake_tui.model.device import Device
from cake_tui.model.facts import StaticFacts
from cake_tui.model.lowered import Launch, LaunchPlan

WARP = 32
REGISTER_UNIT, WARP_UNIT = 256, 4
SMEM_UNIT, SMEM_SYSTEM = 128, 1024


class Fit(msgspec.Struct, frozen=True):
    """One launch on one device; `limiter` is registers, shared memory, threads or blocks."""

    blocks_per_sm: int
    occupancy_pct: float
    limiter: str
    blocks: int
    threads: int
    waves: float


def single(plan: LaunchPlan) -> Launch | None:
    """Return the launch of a plan that has one; of several the compiler's report does not say which needs what."""
    return plan.launches[0] if len(plan.launches) == 1 else None


def fit(launch: Launch, device: Device, facts: StaticFacts) -> Fit | None:
    """Return how a launch fills the device; None where a limit, or what the kernel needs, is unknown."""
    if facts.registers is None or facts.smem_static_bytes is None:
        return None
    limits = (device.threads_per_sm, device.registers_per_sm, device.smem_per_sm_bytes, device.blocks_per_sm)
    if not all(limits) or not device.cores:
        return None
    blocks, threads = math.prod(launch.grid), math.prod(launch.block)
    warps = math.ceil(threads / WARP)
    registers = _up(max(facts.registers, 1) * WARP, REGISTER_UNIT)
    smem = _up(facts.smem_static_bytes + launch.smem_bytes + SMEM_SYSTEM, SMEM_UNIT)
    fitting = {
        "threads": device.threads_per_sm // WARP // warps,
        "registers": device.registers_per_sm // registers // WARP_UNIT * WARP_UNIT // warps,
        "shared memory": device.smem_per_sm_bytes // smem,
        "blocks": device.blocks_per_sm,
    }
    limiter = min(fitting, key=fitting.__getitem__)
    resident = fitting[limiter]
    return Fit(
        blocks_per_sm=resident,
        occupancy_pct=100.0 * resident * warps * WARP / device.threads_per_sm,
        limiter=limiter,
        blocks=blocks,
        threads=threads,
        waves=blocks / (device.cores * resident) if resident else math.inf,
    )


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
