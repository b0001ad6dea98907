"""What the cuda backend does on a machine without a GPU: says what is missing, checks launches, completes cubins."""

from __future__ import annotations

import argparse
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from cake_tui import registry
from cake_tui.backends.cuda import PLUGIN, compilers, devices
from cake_tui.backends.cuda._nvrtc import whole
from cake_tui.backends.cuda.plan import check_limits, check_parameters
from cake_tui.cli._device import choose
from cake_tui.config import Settings
from cake_tui.errors import ENVIRONMENT, Ended, UserError
from cake_tui.model.device import Device
from cake_tui.model.jobs import BuildJob
from cake_tui.model.lowered import Argument, Launch, Lowered
from cake_tui.model.outcome import LaunchFailed

LIMITS = {
    "grid_x": 2**31 - 1, "grid_y": 65535, "grid_z": 65535, "block_x": 1024, "block_y": 1024, "block_z": 64,
    "threads_per_block": 1024, "smem_per_block_bytes": 232_448, "major": 9,
}  # fmt: skip
POINTERS = (Argument("buffer", "a"), Argument("workspace", "space"))
PLAIN = Launch("kernel", (4, 4, 1), (*POINTERS, Argument("size", "M")), (256, 1, 1))


def refusal(launch: Launch, limits: Mapping[str, int] = LIMITS) -> LaunchFailed:
    with pytest.raises(Ended) as caught:
        check_limits(limits, launch)
    assert isinstance(caught.value.outcome, LaunchFailed)
    return caught.value.outcome


# --- a missing driver or compiler -------------------------------------------------------------------------


def test_a_missing_driver_is_named_with_what_to_do() -> None:
    with pytest.raises(UserError) as caught:
        devices.usable(devices.look("libcuda-not-here.so.1"))
    assert caught.value.exit_code == ENVIRONMENT
    assert "libcuda-not-here.so.1" in str(caught.value)
    assert "--backend cpu" in str(caught.value)


@pytest.mark.parametrize("capabilities", [(), (75,), (61, 70)])
def test_gpus_that_are_too_old_are_named(capabilities: tuple[int, ...]) -> None:
    found = tuple(gpu(number) for number in capabilities)
    with pytest.raises(UserError, match=r"sm_80 or newer") as caught:
        devices.usable(devices.Found(found))
    for number in capabilities:
        assert f"GPU{number} (sm_{number})" in str(caught.value)
    assert devices.usable(devices.Found((*found, gpu(80), gpu(90)))) == (gpu(80), gpu(90))


def gpu(capability: int) -> Device:
    return msgspec.structs.replace(
        simulated_gpu(), name=f"GPU{capability}", arch=f"sm_{capability}", capability=capability
    )


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No GPU is visible, whether this machine has one or not."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    devices.ask.cache_clear()
    yield
    devices.ask.cache_clear()


@pytest.mark.cc
def test_without_a_gpu_the_cpu_is_chosen_and_that_is_said(no_gpu: None) -> None:
    chosen = choose(argparse.Namespace(backend="auto", device=None))
    assert chosen.name == "cpu"
    assert chosen.notice.startswith(f"running on cpu ({chosen.device.name}): cuda: ")
    assert choose(argparse.Namespace(backend="cpu", device=None)).notice == ""


def test_a_gpu_that_was_asked_for_by_name_is_not_replaced(no_gpu: None) -> None:
    with pytest.raises(UserError) as caught:
        choose(argparse.Namespace(backend="cuda", device=None))
    assert caught.value.exit_code == ENVIRONMENT


def test_samples_are_shorter_on_a_gpu_and_series_more() -> None:
    on_gpu, on_cpu = Settings.of_device("cuda").gating, Settings.of_device("cpu").gating
    assert (on_cpu, on_gpu.gate_series) == (Settings().gating, 256)
    assert on_gpu.sample_ms < on_cpu.sample_ms


def test_a_missing_cupy_is_named_with_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"CuPy is not installed; pip install 'cake-tui\[cuda13\]'"):
        compilers.find_compiler()


def test_an_nvcc_is_used_where_it_is_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nvcc = tmp_path / "nvcc"
    nvcc.write_text("#!/bin/sh\necho release 99.9\n", encoding="utf-8")
    nvcc.chmod(0o755)
    monkeypatch.setenv("CAKE_TUI_CUDA_COMPILER", str(nvcc))
    lowered = Lowered("cuda", "sm_90a", "", ("-DX=1",), ())
    command = PLUGIN.compile_command(BuildJob(lowered), simulated_gpu(), Path("kernel.cu"), Path("kernel.so"))
    assert command[:4] == (str(nvcc), "-cubin", "-arch=sm_90a", "--ptxas-options=-v")
    assert "-DX=1" in command
    assert command[-3:] == ("-o", "kernel.so", "kernel.cu")
    assert compilers.version((str(nvcc),)) == "release 99.9"


def test_an_nvcc_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAKE_TUI_CUDA_COMPILER", "/nowhere/nvcc")
    with pytest.raises(UserError, match="no /nowhere/nvcc here") as caught:
        compilers.find_compiler()
    assert caught.value.exit_code == ENVIRONMENT


def simulated_gpu() -> Device:
    found: Device = registry.load("backends", "simulated").devices()[0]
    return found


def test_the_compile_process_imports_neither_cupy_nor_numpy() -> None:
    code = (
        f"import runpy, sys\nrunpy.run_path({str(compilers.NVRTC)!r}, run_name='imported')\nprint(*sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert not {"cupy", "numpy", "cake_tui", "msgspec"} & set(done.stdout.split())


def test_a_cubin_gets_the_byte_back_that_the_bindings_drop() -> None:
    header = bytearray(64)
    header[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<QQ", header, 32, 200, 100)  # program headers behind the sections
    struct.pack_into("<HHHH", header, 54, 56, 2, 64, 1)
    full = bytes(header).ljust(200 + 2 * 56, b"\0")
    assert whole(full[:-1]) == full
    assert whole(full) == full
    assert whole(full + b"x") == full + b"x"
    assert whole(full[:-9]) == full[:-9]  # that is another fault: the driver shall say so


# --- launches -----------------------------------------------------------------------------------------------


def test_a_launch_within_its_limits_passes() -> None:
    check_limits(LIMITS, PLAIN)
    check_parameters([8, 8, 4], PLAIN)
    check_parameters(None, PLAIN)  # a driver that cannot tell


@pytest.mark.parametrize(
    ("changes", "words", "limit"),
    [
        ({"grid": (1, 70_000, 1)}, "grid.y 70000 > 65535", "grid.y"),
        ({"grid": (2**31, 1, 1)}, f"grid.x {2**31} > {2**31 - 1}", "grid.x"),
        ({"grid": (0, 1, 1)}, "grid.x 0 < 1", "grid.x"),
        ({"block": (32, 33, 1)}, "1056 threads > 1024", "threads a block"),
        ({"block": (1, 1, 65)}, "block.z 65 > 64", "block.z"),
        ({"smem_bytes": 232_449}, "dynamic shared memory 232449 > 232448", "dynamic shared memory"),
        ({"cluster": (17, 1, 1)}, "cluster 17 > 16", "cluster"),
        ({"cluster": (3, 1, 1)}, "grid.x 4 is no multiple of the cluster's 3", None),
    ],
)
def test_a_launch_beyond_a_limit_names_both_numbers(changes: dict[str, object], words: str, limit: str | None) -> None:
    outcome = refusal(msgspec.structs.replace(PLAIN, **changes))
    assert words in outcome.reason
    assert outcome.limit == limit


def test_clusters_need_a_gpu_that_has_them() -> None:
    outcome = refusal(msgspec.structs.replace(PLAIN, cluster=(2, 1, 1)), {**LIMITS, "major": 8})
    assert "cluster 2 > 1" in outcome.reason


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ([8, 8], "takes 2 arguments, the plan passes 3"),
        ([8, 8, 8], "argument 2 takes 8 bytes, the plan passes the size M of 4"),
        ([4, 8, 4], "argument 0 takes 4 bytes, the plan passes the buffer a of 8"),
    ],
)
def test_arguments_must_be_those_of_the_binary(sizes: list[int], words: str) -> None:
    with pytest.raises(Ended) as caught:
        check_parameters(sizes, PLAIN)
    assert isinstance(caught.value.outcome, LaunchFailed)
    assert words in caught.value.outcome.reason
