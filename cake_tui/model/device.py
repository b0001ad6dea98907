"""A device: what runs kernels, with the limits that laws, the cost model and the agents read."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

Target = Literal["c", "cuda"]
TARGETS: tuple[Target, ...] = get_args(Target)


class Device(msgspec.Struct, frozen=True, cache_hash=True):
    """One processor. Limits that a kind of device lacks are 0, unknown rates None."""

    kind: Literal["cpu", "cuda", "simulated"]
    target: Target
    name: str
    uuid: str  # GPU-..., cpu:<machine-id>, simulated:<surface>
    arch: str  # sm_90a, x86-64-v4: exact, as the compiler is asked for it
    cores: int  # physical CPU cores used (the thread pool's size), or SMs
    clock_mhz: float | None = None
    peak_gflops: float | None = None  # fp32, all cores
    memory_gbps: float | None = None
    # CPU
    vector_bytes: int = 0  # widest SIMD register
    vector_registers: int = 0
    l1_bytes: int = 0
    l2_bytes: int = 0
    l3_bytes: int = 0
    line_bytes: int = 64
    # GPU
    threads_per_block: int = 0
    threads_per_sm: int = 0
    blocks_per_sm: int = 0
    registers_per_thread: int = 0
    registers_per_sm: int = 0
    smem_per_block_bytes: int = 0  # opt-in limit
    smem_per_sm_bytes: int = 0
    capability: int = 0  # 90 for sm_90
