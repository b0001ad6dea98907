"""Theoretical occupancy by hand, for an H200: 2048 threads, 65536 registers, 228 KiB, 32 blocks a multiprocessor."""

from __future__ import annotations

import msgspec
import pytest

from cake_tui.model.device import Device
from cake_tui.model.facts import StaticFacts
from cake_tui.model.lowered import Launch, LaunchPlan
from cake_tui.model.problem import Shape
from cake_tui.steps.occupancy import fit, single
from tests.cuda.recording import RECORDED, Recording, Taken

H200 = Device(
    "cuda", "cuda", "NVIDIA H200", "GPU-1", "sm_90a", 132, threads_per_sm=2048, registers_per_sm=65536,
    smem_per_sm_bytes=233472, blocks_per_sm=32, capability=90,
)  # fmt: skip


def recorded() -> tuple[Taken, ...]:
    """Kernels that Nsight Compute told of on an H200."""
    return msgspec.json.decode(RECORDED.read_bytes(), type=Recording).taken


def launch(threads: int, blocks: int = 1056, smem: int = 0) -> Launch:
    return Launch("k", (blocks, 1, 1), (), (threads, 1, 1), smem_bytes=smem)


@pytest.mark.parametrize(
    ("threads", "registers", "smem", "blocks", "limiter", "percent"),
    [
        # 32 registers: 8 blocks of 256 threads fill 64 warps
        (256, 32, 0, 8, "threads", 100.0),
        # 113 registers take 3840 a warp (units of 256): 17 warps fit, in fours 16: two blocks of 8 warps
        (256, 113, 16640, 2, "registers", 25.0),
        # 255 registers, a block of 1024 threads needs 32 x 8192: does not fit
        (1024, 255, 0, 0, "registers", 0.0),
        # 100 KiB and the system's 1 KiB: two blocks in 228 KiB
        (128, 32, 102400, 2, "shared memory", 12.5),
        # one warp a block: 32 blocks are the most
        (32, 16, 0, 32, "blocks", 50.0),
    ],
)
def test_blocks_that_fit_on_a_multiprocessor(
    threads: int, registers: int, smem: int, blocks: int, limiter: str, percent: float
) -> None:
    found = fit(launch(threads), H200, StaticFacts(registers=registers, smem_static_bytes=smem))
    assert found is not None
    assert (found.blocks_per_sm, found.limiter, found.occupancy_pct) == (blocks, limiter, percent)


def test_dynamic_shared_memory_counts_and_waves_follow() -> None:
    found = fit(launch(128, 264, 102400), H200, StaticFacts(registers=32, smem_static_bytes=0))
    assert found is not None
    assert (found.blocks_per_sm, found.waves) == (2, 1.0)


@pytest.mark.parametrize("facts", [StaticFacts(), StaticFacts(registers=32), StaticFacts(smem_static_bytes=0)])
def test_what_is_unknown_is_no_guess(facts: StaticFacts) -> None:
    assert fit(launch(128), H200, facts) is None


def test_a_device_without_limits_gives_nothing() -> None:
    bare = Device("cuda", "cuda", "x", "GPU-1", "sm_90a", 132)
    assert fit(launch(128), bare, StaticFacts(registers=32, smem_static_bytes=0)) is None


def test_only_a_plan_of_one_launch_says_whose_registers_they_are() -> None:
    shape = Shape((("M", 1),))
    assert single(LaunchPlan(shape, (launch(256, 64),))) == launch(256, 64)
    assert single(LaunchPlan(shape, (launch(256, 64), launch(1024, 1)))) is None


@pytest.mark.parametrize("one", recorded(), ids=lambda one: f"{one.rule}-{one.variant}")
def test_formula_agrees_with_what_the_profiler_says_of_real_kernels(one: Taken) -> None:
    told = one.profile
    assert told is not None
    assert told.threads is not None
    assert told.blocks is not None
    facts = StaticFacts(registers=told.regs_per_thread, smem_static_bytes=told.smem_static_bytes)
    found = fit(launch(told.threads, told.blocks, told.max_dynamic_smem_bytes or 0), H200, facts)
    assert found is not None
    assert found.occupancy_pct == told.occupancy_limit_pct
    assert found.waves == pytest.approx(told.waves, abs=0.006)
