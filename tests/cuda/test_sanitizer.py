"""The memory and race checkers on a real GPU: what is wrong is found and placed, what is right is left alone."""

from __future__ import annotations

import re

import msgspec
import pytest

from cake_tui import ir, kernels
from cake_tui.executors.local import Local
from cake_tui.model.device import Device
from cake_tui.model.jobs import Inspect, Inspected, Subject, Timed, Tool
from cake_tui.model.lowered import Argument, Launch, LaunchPlan, Lowered
from cake_tui.model.problem import Problem
from cake_tui.steps.plan import smoke_build
from tests.cuda.jobs import KERNELS, SMOKE, build, pairs, problem_of, variant

pytestmark = pytest.mark.cuda


def looked_at(executor: Local, tool: Tool, subject: Subject) -> Inspected:
    found = executor.inspect(Inspect(problem_of(SMOKE[0]), tool, ((3, subject),), 1), 120.0)
    assert not found.refused, f"{found.refused} {found.cure}"
    [seen] = found.seen
    assert seen.candidate == 3
    assert not seen.failed
    return found


def reversing(arch: str, *options: str) -> Lowered:
    """The kernel that needs a barrier, at a small shape."""
    arguments = tuple(Argument("buffer", name) for name in ("a", "b", "bias", "y"))
    arguments += tuple(Argument("size", name) for name in "MNK")
    launch = Launch("kernel", (8, 1, 1), arguments, (128, 1, 1))
    source = (KERNELS / "shared.cu").read_text(encoding="utf-8")
    return Lowered("cuda", arch, source, options, (LaunchPlan(SMOKE[0], (launch,)),))


@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
def test_an_honest_kernel_is_clean(executor: Local, device: Device, tool: Tool) -> None:
    (subject,) = build(executor, variant(device.arch, shapes=SMOKE))
    [seen] = looked_at(executor, tool, subject).seen
    assert (seen.errors, seen.complaints) == (0, ())


@pytest.mark.parametrize("fault", ["WRITES_BEHIND", "WRITES_FAR"])
def test_a_write_out_of_bounds_is_placed(executor: Local, device: Device, fault: str) -> None:
    (subject,) = build(executor, variant(device.arch, fault, shapes=SMOKE))
    [seen] = looked_at(executor, "memcheck", subject).seen
    assert seen.errors > 0
    assert "write" in seen.complaints[0]
    assert "kernel" in seen.complaints[0]


def test_a_missing_barrier_is_a_race_and_a_barrier_is_not(executor: Local, device: Device) -> None:
    without, with_barrier = build(executor, reversing(device.arch), reversing(device.arch, "-DBARRIER"))
    [seen] = looked_at(executor, "racecheck", without).seen
    assert seen.errors > 0
    assert seen.complaints
    [seen] = looked_at(executor, "racecheck", with_barrier).seen
    assert seen.errors == 0


def test_the_evaluator_times_as_before_beside_a_tool(executor: Local, device: Device) -> None:
    (subject,) = build(executor, variant(device.arch))
    replaced = executor.replacements
    looked_at(executor, "memcheck", build(executor, variant(device.arch, "WRITES_FAR", shapes=SMOKE))[0])
    assert isinstance(executor.evaluate(pairs(subject, subject), 60.0), Timed)
    assert executor.replacements == replaced


def test_a_lane_that_arrives_for_its_warp_is_all_that_racecheck_complains_of(executor: Local, device: Device) -> None:
    """Were the race real, it would be there as well where every thread arrives for itself."""
    once, each = arriving(device)
    assert once.source != each.source
    for lowered in (once, each):
        (subject,) = build(executor, lowered)
        found = executor.inspect(Inspect(problem(), "racecheck", ((3, subject),), 1), 240.0)
        assert not found.refused, f"{found.refused} {found.cure}"
        [seen] = found.seen
        print(seen.errors, seen.complaints[:2], found.cure)
        assert seen.errors == 0 or (lowered is once and "false alarm" in found.cure)


def problem() -> Problem:
    return kernels.load("matmul_bias_relu", target="cuda", shapes=["M=1024,N=1024,K=1024"])


def arriving(device: Device) -> tuple[Lowered, Lowered]:
    """A product by loader and compute warps, its smoke build: free slots are told once a warp, or once a thread."""
    schedule = ir.default_schedule(problem(), "warp_specialized", "cuda", device)
    once = smoke_build(schedule, problem(), device, 0.25, {})
    source = once.source.replace("barrier_init(&free[slot], threads_x * threads_y / 32)",
                                 "barrier_init(&free[slot], threads_x * threads_y)")  # fmt: skip
    source = re.sub(r"if \(thread % 32 == 0\)\s+(barrier_arrive\(&free\[slot\]\);)", r"\1", source)
    return once, msgspec.structs.replace(once, source=source)
