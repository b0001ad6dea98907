"""Theoretical occupancy by hand, for an H200: 2048 threads, 65536 registers, 228 KiB, 32 blocks a multiprocessor."""

from __future__ import annotations

import pytest

from cake_tui.model.device import Device
from cake_tui.model.facts import StaticFacts
from cake_tui.model.lowered import Launch, LaunchPlan
from cake_tui.model.problem import Shape
from cake_tui.steps.occupancy import fit, widest

H200 = Device(
    "cuda", "cuda", "NVIDIA H200", "GPU-1", "sm_90a", 132, threads_per_sm=2048, registers_per_sm=65536,
    smem_per_sm_bytes=233472, blocks_per_sm=32, capability=90,
)  # fmt: skip


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


def test_the_widest_launch_speaks_for_the_plan() -> None:
    plan = LaunchPlan(Shape((("M", 1),)), (launch(32, 4), launch(256, 64), launch(1024, 1)))
    assert widest(plan).block == (256, 1, 1)
