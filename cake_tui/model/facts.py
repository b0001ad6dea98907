"""Facts about a build and a run: static facts from the compiler, agreement from the check, profile."""

from __future__ import annotations

from typing import Literal

import msgspec


class StaticFacts(msgspec.Struct, frozen=True, gc=False):
    """What the compiler's report and the assembly say; None where the source does not tell.

    `vector_share` is the share of floating-point arithmetic instructions on full-width vector registers.
    """

    compiler: str = ""
    code_bytes: int | None = None
    vector_bytes: int | None = None
    vector_share: float | None = None
    fma_instructions: int | None = None
    spill_stores: int | None = None
    spill_loads: int | None = None
    missed_loops: tuple[str, ...] = ()  # the compiler's own words for loops it did not vectorise
    registers: int | None = None  # a thread, the most of any kernel
    stack_bytes: int | None = None  # a thread's, spills and local arrays
    smem_static_bytes: int | None = None  # a block's
    barriers: int | None = None
    sass: tuple[tuple[str, int], ...] = ()  # instructions by class, as LDG.128; empty where nothing disassembles


class Agreement(msgspec.Struct, frozen=True, gc=False):
    """The check passed: the largest errors over all input sets and shapes, and what was looked at."""

    max_abs_err: float
    rel_err: float  # largest error over largest reference value
    worst_unit: float  # largest error in units of u*S, u = 2^-24
    bound_share: float  # largest error as a share of its bound
    input_sets: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    deterministic: bool = True
    notes: tuple[str, ...] = ()  # what is worth knowing but no reason to refuse (what NaN inputs give)


class Profile(msgspec.Struct, frozen=True, gc=False):
    """Counters of one candidate; `source` says where they are from; unknown is None, never a guess.

    With `source` ncu all percentages are the profiler's; otherwise memory and arithmetic are the problem's least
    work over the time, and what only a profiler sees is None. Several launches: of the one that takes longest.
    """

    source: Literal["ncu", "static+model", "static"]
    sm_occupancy_pct: float | None = None
    memory_throughput_pct: float | None = None
    sm_busy_pct: float | None = None
    shared_mem_bank_conflicts: int | None = None
    regs_per_thread: int | None = None
    max_dynamic_smem_bytes: int | None = None
    max_smem_limit: int | None = None
    vector_share: float | None = None
    spills: int | None = None
    bytes_moved: float | None = None
    flops: float | None = None
    imbalance_pct: float | None = None  # slowest thread's busy time over the mean, measured by the pool
    occupancy_limit_pct: float | None = None  # warps that fit on a multiprocessor, of the most there can be
    occupancy_limiter: str | None = None  # what keeps more from fitting: registers, shared memory, threads, blocks
    blocks: int | None = None  # of the launch
    threads: int | None = None  # of a block
    smem_static_bytes: int | None = None
    waves: float | None = None  # blocks over what the device holds at a time
    issue_active_pct: float | None = None  # cycles in which a scheduler issued
    fma_pipe_pct: float | None = None
    l2_throughput_pct: float | None = None
    dram_bytes: float | None = None  # that went to and from memory
    stalls: tuple[tuple[str, float], ...] = ()  # reason -> share of all waiting, 0..1
    bank_conflict_share: float | None = None  # conflicts over the wavefronts of shared memory, 0..1
    sectors_per_load: float | None = None  # 32-byte sectors a global load touches: 4 for 4 bytes a lane, 16 for 16
    sectors_per_store: float | None = None
    local_accesses: int | None = None  # warp instructions to thread-local memory: spills and local arrays
    active_lanes: float | None = None  # threads at work an instruction, 32 at most
    profiled_us: float | None = None  # under the profiler: says nothing about the kernel's time
    passes: int | None = None  # replays that the profiler needed
    kernel: str | None = None  # the launch that the counters are of
