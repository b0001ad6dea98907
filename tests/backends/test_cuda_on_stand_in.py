"""The cuda backend on a stand-in driver: which GPU it takes, errors that stay, devices that go, memory that is full."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cake_tui.backends.cuda import PLUGIN, devices
from cake_tui.errors import ENVIRONMENT, DeviceLost, UserError
from cake_tui.executors.local import Local
from cake_tui.model.device import Device
from cake_tui.model.jobs import Checked, Lost, Refused, Subject, Timed
from cake_tui.model.lowered import Lowered
from cake_tui.model.outcome import LaunchFailed
from tests.backends.gpu_stand_in import GB, H200, MIG, OTHER, StandIn, stand_in
from tests.cuda.jobs import build, check, pairs, variant

pytestmark = pytest.mark.cc

A100 = "GPU-a1000000-aaaa-bbbb-cccc-dddddddddddd"
FULL, UNAVAILABLE, ECC, ILLEGAL, UNKNOWN = 2, 46, 214, 700, 999


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[StandIn]:
    yield stand_in(monkeypatch, tmp_path)
    devices.ask.cache_clear()


def listed() -> tuple[Device, ...]:
    devices.ask.cache_clear()
    return PLUGIN.devices()


@pytest.fixture
def executor(gpu: StandIn, tmp_path: Path) -> Iterator[Local]:
    with Local("cuda", tmp_path / "store", listed()[0], parallel=2) as made:
        yield made


def kernel(fault: int = 0) -> Lowered:
    """A kernel whose launch leaves the error `fault` behind."""
    made = variant("sm_90a")
    return msgspec.structs.replace(made, source=f"// FAULT {fault}\n{made.source}")


def with_fault(executor: Local, fault: int) -> tuple[Subject, Subject]:
    """Return a kernel without a fault and one with."""
    good, bad = build(executor, kernel(), kernel(fault))
    return good, bad


# --- which GPU ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("visible", "found"),
    [
        (None, [H200, OTHER]), ("0,1", [H200, OTHER]), ("1", [OTHER]), ("1,0", [OTHER, H200]), ("0,7,1", [H200]),
        (OTHER, [OTHER]), (OTHER[:12], [OTHER]), (f"{OTHER},{H200}", [OTHER, H200]), (f"{OTHER},GPU-f00d", [OTHER]),
    ],
)  # fmt: skip
def test_devices_are_those_that_are_visible_in_cudas_order(
    gpu: StandIn, monkeypatch: pytest.MonkeyPatch, visible: str | None, found: list[str]
) -> None:
    gpu.devices((H200, 90, 132, 140 * GB, "NVIDIA H200"), (OTHER, 80, 108, 80 * GB, "NVIDIA A100"))
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [device.uuid for device in listed()] == found


@pytest.mark.parametrize("visible", ["", "-1", "7", "GPU-f00d", "NoDevFiles"])
def test_where_none_is_visible_that_is_said(gpu: StandIn, monkeypatch: pytest.MonkeyPatch, visible: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with pytest.raises(UserError, match="CUDA_ERROR_NO_DEVICE") as caught:
        listed()
    assert caught.value.exit_code == ENVIRONMENT


@pytest.mark.parametrize(
    ("capability", "arch", "smem"),
    [(80, "sm_80", 166_912), (89, "sm_89", 166_912), (90, "sm_90a", 232_448), (100, "sm_100a", 232_448)],
)
def test_a_device_has_the_limits_that_its_driver_tells(gpu: StandIn, capability: int, arch: str, smem: int) -> None:
    gpu.devices((A100, capability, 108, 80 * GB, "NVIDIA of some kind"))
    [device] = listed()
    assert (device.name, device.uuid, device.arch, device.cores) == ("NVIDIA of some kind", A100, arch, 108)
    assert (device.capability, device.smem_per_block_bytes) == (capability, smem)


def test_a_mig_instance_is_a_device_under_its_own_uuid(gpu: StandIn, tmp_path: Path) -> None:
    gpu.devices((H200, 90, 132, 140 * GB, "NVIDIA H200"), (MIG, 90, 16, 18 * GB, "NVIDIA H200 MIG 1g.18gb"))
    instance = listed()[1]
    assert (instance.uuid, instance.cores) == (MIG, 16)
    with Local("cuda", tmp_path / "store", instance) as executor:
        [good] = build(executor, kernel())
        assert isinstance(check(executor, good), Checked)


def test_the_evaluator_works_on_the_device_of_its_uuid_whatever_is_visible_now(
    gpu: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu.devices((OTHER, 80, 108, 80 * GB, "NVIDIA A100"), (H200, 90, 132, 140 * GB, "NVIDIA H200"))
    device = listed()[1]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with Local("cuda", tmp_path / "store", device) as executor:
        assert device.uuid == H200
        [good] = build(executor, kernel())
        assert isinstance(check(executor, good), Checked)


# --- one machine that works -----------------------------------------------------------------------------------


def test_a_kernel_is_checked_and_timed_by_the_devices_clock(executor: Local) -> None:
    made = kernel()
    slower = msgspec.structs.replace(made, source=f"// MICROSECONDS 75\n{made.source}")
    good, slow = build(executor, made, slower)
    assert isinstance(check(executor, good), Checked)
    timed = executor.evaluate(pairs(good, slow), 30.0)
    assert isinstance(timed, Timed)
    for pair in timed.series.pairs:
        assert pair.candidate_us / pair.holder_us == pytest.approx(75 / 50, rel=1e-3)


# --- errors that stay -----------------------------------------------------------------------------------------


def test_an_error_that_stays_is_charged_to_who_made_it_and_the_next_runs(executor: Local) -> None:
    good, bad = with_fault(executor, ILLEGAL)
    assert isinstance(check(executor, good), Checked)
    lost = check(executor, bad)
    assert isinstance(lost, Lost)
    assert lost.reason.startswith("CUDA_ERROR_ILLEGAL_ADDRESS")
    assert executor.replacements == 1
    assert isinstance(check(executor, good), Checked)
    assert executor.replacements == 1


def test_a_kernel_that_never_ends_costs_its_evaluator(executor: Local) -> None:
    good, bad = with_fault(executor, 1)
    lost = check(executor, bad, run_limit_s=0.3)
    assert isinstance(lost, Lost)
    assert lost.timed_out
    assert isinstance(check(executor, good), Checked)


# --- a device that goes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "name", "times"), [(UNKNOWN, "UNKNOWN", 1), (ECC, "ECC_UNCORRECTABLE", 2)])
def test_a_device_that_fails_every_call_is_lost_and_no_candidate_pays(
    gpu: StandIn, executor: Local, code: int, name: str, times: int
) -> None:
    [good] = build(executor, kernel())
    assert isinstance(check(executor, good), Checked)
    gpu.lose(code)
    for _ in range(times):  # it stays so until it is mended
        with pytest.raises(DeviceLost) as caught:
            check(executor, good)
        assert name in str(caught.value)
        assert H200 in str(caught.value)
        assert caught.value.exit_code == ENVIRONMENT
    gpu.mend()
    assert isinstance(check(executor, good), Checked)
    assert isinstance(executor.evaluate(pairs(good, good), 30.0), Timed)


def test_an_error_of_the_context_alone_is_no_loss_of_the_device(gpu: StandIn, executor: Local) -> None:
    good, bad = with_fault(executor, UNKNOWN)
    lost = check(executor, bad)
    assert isinstance(lost, Lost)
    assert "CUDA_ERROR_UNKNOWN" in lost.reason
    assert isinstance(check(executor, good), Checked)


def test_a_device_that_went_between_two_jobs_is_lost_at_the_next(gpu: StandIn, executor: Local) -> None:
    good, bad = with_fault(executor, ILLEGAL)
    assert isinstance(check(executor, bad), Lost)
    gpu.fail(UNAVAILABLE, "cuDevicePrimaryCtxRetain")  # as one that is held by somebody in exclusive mode
    with pytest.raises(DeviceLost, match="DEVICE_UNAVAILABLE"):
        check(executor, bad)  # on the spare, which had its context before
    gpu.mend()
    assert isinstance(check(executor, good), Checked)


# --- memory, drivers ------------------------------------------------------------------------------------------


def test_a_device_without_room_is_named_with_what_is_free(gpu: StandIn, executor: Local) -> None:
    [good] = build(executor, kernel())
    assert isinstance(check(executor, good), Checked)
    replaced, called = executor.replacements, 0
    for further in (1, 3, 6, 9):  # inputs, outputs, copies
        called += further
        gpu.fail_once(FULL, "cuMemAlloc_v2", called)
        refused = check(executor, good)
        assert isinstance(refused, Refused), refused
        assert isinstance(refused.outcome, LaunchFailed)
        assert "CUDA_ERROR_OUT_OF_MEMORY" in refused.outcome.reason
        assert "MB are free" in refused.outcome.reason
        gpu.mend()
        assert isinstance(check(executor, good), Checked)
    assert executor.replacements == replaced  # it gave back what it had taken


def test_a_driver_older_than_the_compiler_is_named_with_both_versions(gpu: StandIn, tmp_path: Path) -> None:
    gpu.version(12020)
    gpu.fail(222, "cuModuleLoadData")
    device = listed()[0]
    with Local("cuda", tmp_path / "store", device) as executor, pytest.raises(UserError) as caught:
        check(executor, Subject("0" * 64, kernel()))
    for part in ("CUDA 12.2", "release 13.0", "UNSUPPORTED_PTX_VERSION", "newer driver", "cuda12"):
        assert part in str(caught.value)


def test_a_device_is_lost_where_a_new_process_cannot_use_it(gpu: StandIn) -> None:
    assert devices.lost(H200) is None
    assert OTHER in (devices.lost(OTHER) or "")
    gpu.fail(UNAVAILABLE, "cuDevicePrimaryCtxRetain")
    assert "DEVICE_UNAVAILABLE" in (devices.lost(H200) or "")
