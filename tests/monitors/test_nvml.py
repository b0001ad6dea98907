"""NVML's readings under a stand-in for its library: the right GPU, what fails, who else is there, what doctor says."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cake_tui.cli import _gpu
from cake_tui.model.device import Device
from cake_tui.monitors import _users, nvml
from cake_tui.monitors._users import Users
from cake_tui.monitors.nvml import NvmlMonitor

OURS = "GPU-11111111-0000-0000-0000-000000000000"
H200 = Device("cuda", "cuda", "NVIDIA H200", OURS, "sm_90a", 132, capability=90)


def monitor() -> NvmlMonitor:
    made = nvml.PLUGIN(H200)
    assert isinstance(made, NvmlMonitor)
    return made


def our_gpu(pynvml: Any) -> Any:
    return pynvml.GPUS[1]


# -- case A15: which GPU -------------------------------------------------------------------------------------


def test_the_gpu_that_runs_the_kernels_is_read_whatever_its_number(pynvml: Any) -> None:
    clock = monitor().read()
    assert (clock.sm_mhz, clock.memory_mhz, clock.sm_max_mhz) == (1980.0, 3201.0, 1980.0)
    pynvml.GPUS.reverse()
    assert monitor().read().sm_mhz == 1980.0


def test_units_are_watts_and_celsius(pynvml: Any) -> None:
    clock = monitor().read()
    assert (clock.power_w, clock.power_limit_w, clock.temperature_c) == (300.0, 700.0, 45.0)


def test_an_unknown_uuid_is_named_with_those_that_are_there(pynvml: Any) -> None:
    clock = NvmlMonitor(Device("cuda", "cuda", "x", "GPU-2", "sm_90a", 132)).read()
    assert clock.sm_mhz is None
    assert "GPU-2" in clock.error
    assert OURS in clock.error


def test_uuid_is_found_by_comparing_where_the_library_cannot_look_it_up(pynvml: Any) -> None:
    our_gpu(pynvml).fails["nvmlDeviceGetHandleByUUID"] = 999
    assert monitor().read().sm_mhz == 1980.0


# -- case A16: what cannot be read ---------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "name"), [(12, "LibraryNotFound"), (18, "LibRmVersionMismatch"), (999, "Unknown")])
def test_a_library_that_does_not_start_is_named_by_its_error(pynvml: Any, code: int, name: str) -> None:
    pynvml.INIT_FAILS.append(code)
    made = monitor()
    readings = [made.read() for _ in range(5)]
    assert all(reading.sm_mhz is None and name in reading.error for reading in readings)
    assert pynvml.CALLS.count("nvmlInit") == 1  # and again only after a while
    assert set(made.missing()) >= {"sm_mhz", "power_w", "foreign_processes"}
    assert nvml.state().error.startswith(f"nvmlInit: NVMLError_{name}")


@pytest.mark.parametrize(
    ("function", "code", "field"),
    [
        ("nvmlDeviceGetPowerUsage", 3, "power_w"), ("nvmlDeviceGetClockInfo", 999, "sm_mhz"),
        ("nvmlDeviceGetTemperature", 13, "temperature_c"), ("nvmlDeviceGetMaxClockInfo", 4, "sm_max_mhz"),
        ("nvmlDeviceGetComputeRunningProcesses", 3, None), ("nvmlDeviceGetFieldValues", 3, None),
        ("nvmlDeviceGetCurrentClocksEventReasons", 3, None),
    ],
)  # fmt: skip
def test_one_query_that_fails_leaves_the_others_alone(pynvml: Any, function: str, code: int, field: str | None) -> None:
    our_gpu(pynvml).fails[function] = code
    made = monitor()
    clock = made.read()
    made.read()
    if field is not None:
        assert getattr(clock, field) is None
        assert pynvml.CODES[code] in made.missing()[field]
    asked = pynvml.CALLS.count(function)
    assert asked == (1 if code in (3, 4, 13) and function != "nvmlDeviceGetClockInfo" else asked)
    others = {"power_w": 300.0, "memory_mhz": 3201.0, "temperature_c": 45.0, "sm_max_mhz": 1980.0}
    if function == "nvmlDeviceGetClockInfo":
        del others["memory_mhz"]
        assert "Unknown" in clock.error
    assert {name: getattr(clock, name) for name in others if name != field} == {
        name: value for name, value in others.items() if name != field
    }


def test_a_reading_that_comes_back_is_missing_no_more(pynvml: Any) -> None:
    gpu, made = our_gpu(pynvml), monitor()
    gpu.fails["nvmlDeviceGetPowerUsage"] = 999
    made.read()
    assert "power_w" in made.missing()
    gpu.fails.clear()
    assert made.read().power_w == 300.0
    assert "power_w" not in made.missing()


def test_a_lost_gpu_is_in_the_health_and_looked_for_again(pynvml: Any) -> None:
    gpu, made = our_gpu(pynvml), monitor()
    made.read()
    gpu.fails["nvmlDeviceGetClockInfo"] = 15
    assert made.read_device().health == ("GPU is lost",)
    gpu.fails.clear()
    assert made.read().sm_mhz in (None, 1980.0)


def test_another_package_of_the_same_name_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "pynvml").mkdir()
    (tmp_path / "pynvml" / "__init__.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    assert "nvidia-ml-py" in monitor().read().error
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)


# -- reasons, counters, health -------------------------------------------------------------------------------


def test_reasons_are_words_and_unknown_bits_keep_their_number(pynvml: Any) -> None:
    our_gpu(pynvml).reasons = 0x4 | 0x8000
    assert monitor().read().reasons == ("power cap", "unknown reason 0x8000")


def test_counters_are_read_by_name_and_unsupported_ones_left_out(pynvml: Any) -> None:
    gpu = our_gpu(pynvml)
    gpu.fields = {74: 5_000_000, 269: 7}
    assert monitor().read().counters == (("power cap", 5_000_000), ("software thermal slowdown", 7))


def test_ecc_errors_and_remapped_rows_are_in_the_health(pynvml: Any) -> None:
    our_gpu(pynvml).fields |= {4: 2, 144: 1, 145: 0, 230: 1}
    said = " ".join(monitor().read().health)
    assert "ECC errors since the driver was loaded: 2" in said
    assert "waits for a reset" in said
    assert "action 1" in said
    assert "remap failed" not in said


# -- who else is there ---------------------------------------------------------------------------------------


def test_own_processes_are_no_foreigners_and_graphics_count(pynvml: Any) -> None:
    gpu = our_gpu(pynvml)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        gpu.compute = [pynvml.Process(os.getpid(), 10), pynvml.Process(child.pid, 20), pynvml.Process(1, 300)]
        gpu.graphics = [pynvml.Process(2, 4000)]
        clock = monitor().read()
        assert (clock.foreign_processes, clock.foreign_bytes) == (2, 4300.0)
    finally:
        child.communicate(b"\n")


def test_the_list_is_asked_for_twice_a_second_at_most(pynvml: Any) -> None:
    made = monitor()
    for _ in range(20):
        made.read()
    assert pynvml.CALLS.count("nvmlDeviceGetComputeRunningProcesses") <= 2


def test_in_another_namespace_own_processes_are_taken_off_by_number(tmp_path: Path) -> None:
    for pid, fds in ((100, ["/dev/null"]), (101, ["/dev/nvidia0"]), (102, ["/dev/nvidiactl"])):
        for part in ("fd", f"task/{pid}"):
            (tmp_path / str(pid) / part).mkdir(parents=True)
        children = "101 102" if pid == 100 else ""
        (tmp_path / str(pid) / "task" / str(pid) / "children").write_text(children, encoding="utf-8")
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a b) c) S {100 if pid > 100 else 1} 1", encoding="utf-8")
        for at, target in enumerate(fds):
            (tmp_path / str(pid) / "fd" / str(at)).symlink_to(target)
    users = Users(100, tmp_path)
    found = users.look(lambda: ({9001: 5.0, 9002: 6.0, 9003: 7.0}, ""))
    assert found == _users.Found(1, None, "the driver numbers processes otherwise than here")


def test_a_driver_that_lists_nothing_says_why(pynvml: Any) -> None:
    for kind in ("Compute", "Graphics"):
        our_gpu(pynvml).fails[f"nvmlDeviceGet{kind}RunningProcesses"] = 4
    made = monitor()
    assert made.read().foreign_processes is None
    assert "NoPermission" in made.missing()["foreign_processes"]


def test_a_reading_of_the_device_takes_well_under_a_millisecond(pynvml: Any) -> None:
    made = monitor()
    made.read()
    began = time.perf_counter()
    for _ in range(200):
        made.read_device()
    assert (time.perf_counter() - began) / 200 < 5e-3  # a bound far off: the interpreter's own share is 30 us


# -- doctor --------------------------------------------------------------------------------------------------


def test_doctor_names_what_disturbs_with_the_line_that_cures_it(pynvml: Any) -> None:
    our_gpu(pynvml).compute = [pynvml.Process(1)]
    found = list(_gpu.look())
    said = "\n".join(f"{one.subject}: {one.text} -> {one.do}" for one in found)
    for cure in ("sudo nvidia-smi -i 0 -pm 1", "-lgc 1980", "-mig 0", "-c 0", "nvidia-smi -i 1 lists them"):
        assert cure in said
    assert "1 processes use it" in said
    assert {one.state for one in found} <= {"ok", "note", "missing"}


def test_doctor_knows_a_driver_that_keeps_counters_for_administrators(
    pynvml: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "ncu").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    params = tmp_path / "params"
    params.write_text("RmProfilingAdminOnly: 1\n", encoding="utf-8")
    monkeypatch.setattr(_gpu, "PARAMETERS", params)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    [profiler] = [one for one in _gpu.look() if one.subject == "profiler"]
    assert profiler.state == "note"
    assert "NVreg_RestrictProfilingToAdminUsers=0" in profiler.do


def test_doctor_without_a_library_prints_its_exact_error(pynvml: Any) -> None:
    pynvml.INIT_FAILS.append(18)
    [only] = list(_gpu.look())
    assert "NVMLError_LibRmVersionMismatch" in only.text
