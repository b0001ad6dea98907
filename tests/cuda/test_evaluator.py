"""The evaluator on a real GPU: checks, launches through the plan, times with the device's own clock."""

from __future__ import annotations

import msgspec
import pytest

from cake_tui.backends.cuda import PLUGIN
from cake_tui.executors.local import Local
from cake_tui.model.device import Device
from cake_tui.model.jobs import Checked, Refused, SelfTest, SelfTested, Timed, TimePeer
from cake_tui.model.lowered import Argument, Launch, Lowered
from cake_tui.model.outcome import LaunchFailed
from cake_tui.model.problem import Shape
from tests.cuda.jobs import BLOCK, RANKED, SMOKE, build, check, feature, pairs, problem_of, shape_of, variant

pytestmark = pytest.mark.cuda


def test_a_device_tells_its_limits(device: Device) -> None:
    assert device.uuid.startswith(("GPU-", "MIG-"))
    assert device.capability >= 80
    assert device.arch.startswith(f"sm_{device.capability}")
    assert device.cores > 8
    assert device.smem_per_block_bytes > 48 << 10
    assert device.l2_bytes > 1 << 20
    assert PLUGIN.probe(device).version


def test_peak_rates_are_of_this_order(device: Device) -> None:
    measured = PLUGIN.measured(device)
    assert measured.memory_gbps is not None
    assert measured.peak_gflops is not None
    # No copy beats the memory's own rate; multiply-adds: 128 a cycle and SM, two operations each.
    assert 0.3 * (device.memory_gbps or 0) < measured.memory_gbps <= 1.02 * (device.memory_gbps or 1e9)
    assert 0.3 < measured.peak_gflops / (device.cores * 256 * (device.clock_mhz or 1) / 1e3) < 1.1


def test_the_check_tells_right_from_wrong(executor: Local) -> None:
    reply = executor.evaluate(SelfTest(problem_of()), 120.0)
    assert isinstance(reply, SelfTested)
    assert reply.passed, reply.cases


def test_an_honest_kernel_passes_at_every_depth(executor: Local, device: Device) -> None:
    full, smoke = build(executor, variant(device.arch), variant(device.arch, shapes=SMOKE))
    for subject, depth in ((full, "baseline"), (smoke, "smoke"), (full, "full")):
        reply = check(executor, subject, depth)
        assert isinstance(reply, Checked), reply
        assert reply.agreement.worst_unit < 65  # what honest fp32 reaches at most
        assert reply.agreement.deterministic


@pytest.mark.parametrize("shape", [shape_of(1, 1, 1), shape_of(257, 511, 383), shape_of(5, 1031, 3)])
def test_odd_sizes_are_checked(executor: Local, device: Device, shape: Shape) -> None:
    (subject,) = build(executor, variant(device.arch, shapes=(shape,)))
    assert isinstance(check(executor, subject, "full", problem_of(shape)), Checked)


@pytest.mark.parametrize("value", ["gelu_erf(acc + bias[n])", "acc"])
def test_another_value_is_no_agreement(executor: Local, device: Device, value: str) -> None:
    (subject,) = build(executor, variant(device.arch))
    assert isinstance(check(executor, subject, "full", problem_of(value=value)), Refused)


@pytest.mark.parametrize("name", ["DYNAMIC", "CLUSTER", "TENSOR_MAP"])
def test_launches_take_what_the_plan_says(executor: Local, device: Device, name: str) -> None:
    if name != "DYNAMIC" and device.capability < 90:
        pytest.skip(f"{name}: sm_90 or newer")
    (subject,) = build(executor, feature(device.arch, name))
    reply = check(executor, subject)
    assert isinstance(reply, Checked), reply


def test_truth_may_be_the_first_setting(executor: Local, device: Device) -> None:
    first, same, other = build(
        executor, variant(device.arch), variant(device.arch, "SAME"), variant(device.arch, "LAST_TERM_MISSING")
    )
    problem = problem_of(reference_is_first=True)
    assert isinstance(check(executor, same, "full", problem, truth=first), Checked)
    assert isinstance(check(executor, other, "full", problem, truth=first), Refused)


# --- launch limits --------------------------------------------------------------------------------------


def _launch(lowered: Lowered, **changes: object) -> Lowered:
    plan = lowered.plans[0]
    launch = msgspec.structs.replace(plan.launches[0], **changes)
    return msgspec.structs.replace(lowered, plans=(msgspec.structs.replace(plan, launches=(launch,)),))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"grid": (1, 70_000, 1)}, "grid.y 70000 > 65535"),
        ({"block": (32, 33, 1)}, "1056 threads > 1024"),
        ({"smem_bytes": 300 << 10}, "shared memory"),
        ({"entry": "nowhere"}, "no entry nowhere"),
        ({"arguments": (Argument("buffer", "a"),)}, "takes 7 arguments, the plan passes 1"),
        (
            {"arguments": (*(Argument("buffer", name) for name in ("a", "b", "bias", "y", "a")), Argument("size", "N"),
                           Argument("size", "K"))},
            "argument 4 takes 4 bytes, the plan passes the buffer a of 8",
        ),
    ],
)  # fmt: skip
def test_a_launch_beyond_a_limit_is_refused_by_name(
    executor: Local, device: Device, changes: dict[str, object], words: str
) -> None:
    plain = variant(device.arch)
    (subject,) = build(executor, plain)
    reply = check(executor, msgspec.structs.replace(subject, lowered=_launch(plain, **changes)))
    assert isinstance(reply, Refused)
    assert isinstance(reply.outcome, LaunchFailed)
    assert words in reply.outcome.reason
    assert isinstance(check(executor, subject), Checked)


# --- timing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cache", ["warm", "cold"])
def test_pairs_are_timed_with_the_devices_clock(executor: Local, device: Device, cache: str) -> None:
    one, other = build(executor, variant(device.arch), variant(device.arch, "SAME"))
    reply = executor.evaluate(pairs(one, other, 4, problem_of(cache=cache)), 60.0)
    assert isinstance(reply, Timed), reply
    series = reply.series
    assert [pair.holder_first for pair in series.pairs] == [False, True, False, True]
    for pair in series.pairs:
        for ghz in (pair.holder_ghz, pair.candidate_ghz):
            assert ghz is not None
            assert 0.2 < ghz < 1.2 * (device.clock_mhz or 3000.0) / 1e3
        assert 1.0 < pair.holder_us < 10_000.0


def test_a_kernel_that_works_twice_as_long_takes_longer(executor: Local, device: Device) -> None:
    short, long = shape_of(1024, 1024, 512), shape_of(1024, 1024, 2048)
    times = []
    for shape in (short, long):
        (subject,) = build(executor, variant(device.arch, shapes=(shape,)))
        reply = executor.evaluate(pairs(subject, subject, 2, problem_of(shape)), 60.0)
        assert isinstance(reply, Timed), reply
        times.append(reply.series.pairs[-1].holder_us)
    assert 3.0 < times[1] / times[0] < 6.0  # four times the terms


@pytest.mark.parametrize("peer", ["cublas", "torch"])
def test_peers_are_timed_beside_the_best(executor: Local, device: Device, peer: str) -> None:
    (subject,) = build(executor, variant(device.arch))
    reply = executor.evaluate(TimePeer(problem_of(), peer, subject, 2, 3, 1.0), 120.0)
    if isinstance(reply, Refused) and "not installed" in reply.outcome.reason:
        pytest.skip(reply.outcome.reason)
    assert isinstance(reply, Timed), reply
    assert peer.removeprefix("cu").lower() in reply.peer_version.lower()
    assert all(1.0 < pair.candidate_us < 5000.0 for pair in reply.series.pairs)


def test_an_unknown_peer_is_refused(executor: Local, device: Device) -> None:
    (subject,) = build(executor, variant(device.arch))
    reply = executor.evaluate(TimePeer(problem_of(), "numpy", subject, 1, 3, 1.0), 60.0)
    assert isinstance(reply, Refused)
    assert "known: cublas, torch" in reply.outcome.reason


def test_a_plan_of_several_launches_runs_in_order(executor: Local, device: Device) -> None:
    plain = variant(device.arch, "WORKSPACE")
    plan = plain.plans[0]
    again: Launch = plan.launches[0]
    both = msgspec.structs.replace(plain, plans=(msgspec.structs.replace(plan, launches=(again, again)),))
    (subject,) = build(executor, both)
    assert subject.lowered.plan(RANKED).launches[0].block == BLOCK
    assert isinstance(check(executor, subject), Checked)
