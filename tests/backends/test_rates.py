"""Peak rates of this machine: measured, above what kernels reach, and unknown rather than guessed where that fails."""

from __future__ import annotations

import ctypes
import math
from pathlib import Path

import msgspec
import numpy as np
import pytest

from cake_tui import ir, kernels, registry
from cake_tui.backends.cpu import PLUGIN
from cake_tui.backends.cpu._rates import CHAINS, Bench
from cake_tui.backends.cpu.device import last_level_bytes, local_device
from cake_tui.errors import ENVIRONMENT, UserError
from cake_tui.executors.local import Local
from cake_tui.model.jobs import BuildJob, Built, Subject, Timed, TimePairs
from cake_tui.model.move import Proposal
from cake_tui.steps import plan

KNOBS = {"vector": 16, "thread_m": 8, "thread_n": 2}
SIZE = 512


@pytest.mark.cc
def test_no_kernel_reaches_much_more_than_the_measured_peak(tmp_path: Path) -> None:
    device = PLUGIN.measured(PLUGIN.devices()[0])
    assert device.memory_gbps is not None
    assert device.memory_gbps > 0.0
    assert device.peak_gflops is not None
    problem = kernels.load("matmul_bias_relu", target="c", shapes=[f"M={SIZE},N={SIZE},K={SIZE}"])
    schedule = ir.default_schedule(problem, "packed", device.target, device).with_knobs(KNOBS)
    draft = plan.draft(Proposal(0, (), "", "start", ""), schedule, None, problem, device, {})
    full = plan.lower(draft, problem, device).full
    with Local("cpu", tmp_path, device) as executor:
        [(_, built)] = executor.build([BuildJob(full)])
        assert isinstance(built, Built)
        subject = Subject(built.binary_sha256, full)
        reply = executor.evaluate(TimePairs(problem, subject, subject, 8, 1), 60.0)
        assert isinstance(reply, Timed)
    fastest_us = min(min(pair.holder_us, pair.candidate_us) for pair in reply.series.pairs)
    reached_gflops = 2.0 * SIZE**3 / fastest_us / 1e3
    assert device.peak_gflops >= 0.8 * reached_gflops


@pytest.mark.cc
def test_every_multiply_add_of_the_measurement_is_done() -> None:
    bench = Bench(local_device())
    rounds = 700
    out = (ctypes.c_float * 1)()
    bench.library.multiply_add((ctypes.c_int * 3)(0, 0, 0), out, rounds)
    kept = 0.999**rounds
    # s -> 0.999 s + 0.001 tends to 1; chain i begins at i / 1000
    expected = sum((1.0 - kept) + kept * chain * 0.001 for chain in range(CHAINS))
    assert out[0] == pytest.approx(expected, rel=1e-4)


@pytest.mark.cc
@pytest.mark.parametrize("entry", ["copy_vectors", "copy_library"])
def test_every_byte_of_a_task_is_copied_and_none_of_others(entry: str) -> None:
    bench = Bench(local_device())
    kib, tasks = 8, 3
    source = np.random.default_rng(1).integers(1, 256, kib * tasks << 10, dtype=np.uint8)
    # vectors are moved at their own alignment
    space = np.zeros(2 * source.size + 4096, np.uint8)
    start = -space.ctypes.data % 4096
    one, other = space[start : start + source.size], space[start + source.size : start + 2 * source.size]
    one[:] = source
    copy = getattr(bench.library, entry)
    copy((ctypes.c_int * 3)(1, 0, 0), ctypes.c_void_p(one.ctypes.data), ctypes.c_void_p(other.ctypes.data), kib)
    part = slice(kib << 10, 2 * kib << 10)
    assert np.array_equal(other[part], source[part])
    assert not other[: kib << 10].any()
    assert not other[2 * kib << 10 :].any()


@pytest.mark.cc
def test_a_machine_that_cannot_be_measured_says_why() -> None:
    device = msgspec.structs.replace(local_device(), arch="x86-64-v99")
    with pytest.raises(UserError) as failed:
        PLUGIN.measured(device)
    assert failed.value.exit_code == ENVIRONMENT
    assert "x86-64-v99" in str(failed.value)


def test_what_was_not_measured_is_unknown() -> None:
    device = local_device()
    assert device.peak_gflops is None
    assert device.memory_gbps is None


def test_a_simulated_device_keeps_its_own_rates() -> None:
    backend = registry.load("backends", "simulated")
    device = backend.devices()[0]
    assert backend.measured(device) == device


def test_all_caches_hold_at_least_what_one_core_sees() -> None:
    device = local_device()
    assert last_level_bytes() >= max(device.l3_bytes, device.l2_bytes, device.l1_bytes)


@pytest.mark.parametrize("gbps", [None, 1e-3, 50.0, 1e6])
def test_the_cost_model_predicts_with_any_memory_rate_and_with_none(gbps: float | None) -> None:
    device = msgspec.structs.replace(local_device(), memory_gbps=gbps)
    times = []
    for size in (64, 4096):
        problem = kernels.load("matmul_bias_relu", target="c", shapes=[f"M={size},N={size},K={size}"])
        program = ir.build(problem, ir.first_schedule(problem, "c", device), "c", device, runtime_sizes=False)
        estimate = ir.cost.estimate(program, device, problem.shapes)
        assert estimate is not None
        times.append(estimate.predicted_us)
    assert 0.0 < times[0] < times[1] < math.inf
