"""The host monitor on trees of proc and sys files, and on this machine."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cake_tui import registry
from cake_tui.model.device import Device
from cake_tui.monitors.host import HostMonitor


def tree(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


WHOLE = {
    "proc/loadavg": "0.50 0.40 0.30 4/321 999\n",
    "proc/stat": "cpu  100 0 100 700 0 0 0 100 50 0\ncpu0 1 1 1 1\n",
    "proc/cpuinfo": "processor : 0\ncpu MHz\t\t: 2000.000\nprocessor : 1\ncpu MHz\t\t: 3000.000\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "2500000\n",
    "sys/class/hwmon/hwmon0/name": "nvme\n",
    "sys/class/hwmon/hwmon0/temp1_input": "31000\n",
    "sys/class/hwmon/hwmon1/name": "coretemp\n",
    "sys/class/hwmon/hwmon1/temp1_input": "54000\n",
}


def test_whole_tree_gives_every_reading(tmp_path: Path) -> None:
    monitor = HostMonitor(rate=lambda: 2.25, root=tree(tmp_path, WHOLE))
    first = monitor.read()
    assert (first.rate, first.load, first.temperature_c, first.sm_mhz) == (2.25, 3.0, 54.0, 2500.0)
    assert first.steal_pct is None  # nothing to compare with yet
    tree(tmp_path, {"proc/stat": "cpu  150 0 150 750 0 0 0 150 75 0\n"})
    assert monitor.read().steal_pct == pytest.approx(25.0)
    assert monitor.missing() == {}


def test_load_leaves_the_reader_out(tmp_path: Path) -> None:
    for running, load in ((1, 0.0), (0, 0.0), (2, 1.0), (65, 64.0)):
        tree(tmp_path, {"proc/loadavg": f"9.0 9.0 9.0 {running}/99 1\n"})
        assert HostMonitor(root=tmp_path).read().load == load


def test_frequency_falls_back_to_cpuinfo(tmp_path: Path) -> None:
    tree(tmp_path, {"proc/cpuinfo": WHOLE["proc/cpuinfo"]})
    assert HostMonitor(root=tmp_path).read().sm_mhz == 2500.0


def test_sensor_of_a_thermal_zone_serves_where_there_is_no_hwmon(tmp_path: Path) -> None:
    tree(
        tmp_path,
        {
            "sys/class/thermal/thermal_zone0/type": "acpitz\n",
            "sys/class/thermal/thermal_zone0/temp": "20000\n",
            "sys/class/thermal/thermal_zone1/type": "x86_pkg_temp\n",
            "sys/class/thermal/thermal_zone1/temp": "71500\n",
        },
    )
    assert HostMonitor(root=tmp_path).read().temperature_c == 71.5


FIELDS = {"rate", "load", "steal_pct", "temperature_c", "sm_mhz"}


def test_empty_tree_reads_nothing_and_says_why_once(tmp_path: Path) -> None:
    monitor = HostMonitor(root=tmp_path)
    clock = monitor.read()
    assert all(getattr(clock, field) is None for field in FIELDS)
    why = monitor.missing()
    assert set(why) == FIELDS
    assert all(reason.startswith("since start: ") for reason in why.values())
    assert "loadavg" in why["load"]
    monitor.read()
    assert monitor.missing() == why


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"\xff\xfe\x00\x01", b"cpu x y z", b"a b c d/e f", b"nan nan nan nan/1"]
)
@pytest.mark.parametrize("name", sorted(WHOLE))
def test_broken_file_costs_its_own_field_alone(tmp_path: Path, name: str, content: bytes) -> None:
    monitor = HostMonitor(rate=lambda: 1.0, root=tree(tmp_path, {**WHOLE, name: content}))
    clock = monitor.read()
    known = {field for field in FIELDS if getattr(clock, field) is not None}
    assert len(known) >= 3
    for field in FIELDS - known - {"steal_pct"}:
        assert monitor.missing()[field]


@pytest.mark.parametrize("millidegrees", ["-274000", "999999999", "inf"])
def test_temperature_that_cannot_be_is_none(tmp_path: Path, millidegrees: str) -> None:
    root = tree(tmp_path, {**WHOLE, "sys/class/hwmon/hwmon1/temp1_input": millidegrees})
    monitor = HostMonitor(root=root)
    assert monitor.read().temperature_c is None
    assert monitor.missing()["temperature_c"]


def test_old_kernel_without_stolen_time(tmp_path: Path) -> None:
    monitor = HostMonitor(root=tree(tmp_path, {"proc/stat": "cpu 1 2 3 4\n"}))
    assert monitor.read().steal_pct is None
    assert "stolen" in monitor.missing()["steal_pct"]


def test_time_that_stands_still_gives_no_share(tmp_path: Path) -> None:
    monitor = HostMonitor(root=tree(tmp_path, WHOLE))
    monitor.read()
    assert monitor.read().steal_pct is None


@pytest.mark.parametrize("failure", [OSError("gone"), ValueError("odd"), RuntimeError("died"), ZeroDivisionError()])
def test_rate_that_fails_is_missing_until_it_is_back(tmp_path: Path, failure: Exception) -> None:
    answers: list[float | Exception] = [failure, 2.0, float("nan")]

    def rate() -> float:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monitor = HostMonitor(rate=rate, root=tmp_path)
    assert monitor.read().rate is None
    assert monitor.missing()["rate"]
    assert monitor.read().rate == 2.0
    assert "rate" not in monitor.missing()
    assert monitor.read().rate is None
    assert "nan" in monitor.missing()["rate"]


def test_reading_that_fails_later_says_since_when(tmp_path: Path) -> None:
    monitor = HostMonitor(root=tree(tmp_path, WHOLE))
    monitor.read()
    monitor._began = time.monotonic() - 42.0
    (tmp_path / "proc/loadavg").unlink()
    assert monitor.read().load is None
    assert monitor.missing()["load"].startswith("since 42 s: ")


def test_this_machine_can_be_read() -> None:
    make = registry.load("monitors", "host")
    monitor = make(Device(kind="cpu", target="c", name="", uuid="cpu:x", arch="", cores=1))
    clock = monitor.read()
    assert clock.mono == pytest.approx(time.monotonic(), abs=5.0)
    assert clock.load is None or clock.load >= 0.0


def test_simulated_device_has_no_host_to_watch() -> None:
    make = registry.load("monitors", "host")
    assert make(Device(kind="simulated", target="c", name="", uuid="simulated:x", arch="", cores=1)) is None
