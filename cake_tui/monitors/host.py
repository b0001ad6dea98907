"""The host: load of others, stolen time, frequency and temperature, from the kernel's own files."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from pathlib import Path

from cake_tui.model.device import Device
from cake_tui.model.measure import Clock
from cake_tui.monitors import MonitorFactory

Rate = Callable[[], float | None]

FIRST_BYTES = 4096  # of /proc/cpuinfo: reading all of it asks every core of a big machine
TEMPERATURES_C = (-40.0, 150.0)  # outside a sensor is broken
_MHZ = re.compile(r"^cpu MHz\s*:\s*([0-9.]+)", re.MULTILINE)
_PACKAGE = re.compile(r"x86_pkg_temp|cpu|soc|coretemp|k10temp|zenpower", re.IGNORECASE)


class HostMonitor:
    """Readings never raise; `missing` says what cannot be read, since when and why.

    `load` counts the runnable tasks besides the reader's own; `steal_pct` is the hypervisor's share of all
    time since the last reading; `sm_mhz` is the processor's frequency. `rate` is asked for the dependent-add
    rate, where there is one. `root` is where proc and sys are found.
    """

    def __init__(self, rate: Rate | None = None, root: Path = Path("/")) -> None:
        self._rate = rate
        self._root = root
        self._began = time.monotonic()
        self._ticks: tuple[float, float] | None = None
        self._missing: dict[str, str] = {}
        self._temperature = self._sensor()

    def read(self) -> Clock:
        """Take one reading now."""
        return Clock(
            mono=time.monotonic(),
            rate=self._value("rate", self._read_rate),
            load=self._value("load", self._read_load),
            steal_pct=self._value("steal_pct", self._read_steal),
            temperature_c=self._value("temperature_c", self._read_temperature),
            sm_mhz=self._value("sm_mhz", self._read_mhz),
        )

    def missing(self) -> dict[str, str]:
        """Field name -> why it cannot be read and since when, in seconds after the start."""
        return dict(self._missing)

    def _value(self, field: str, read: Callable[[], float | None]) -> float | None:
        """Read one field; a failure becomes None and is remembered from its first time on."""
        try:
            value = read()
        except (OSError, ValueError, LookupError, ArithmeticError, RuntimeError) as failure:
            reason = getattr(failure, "strerror", None) or str(failure) or type(failure).__name__
            path = getattr(failure, "filename", None)
            self._miss(field, f"{path}: {reason}" if path else reason)
            return None
        if value is not None and not math.isfinite(value):
            self._miss(field, f"read {value}")
            return None
        self._missing.pop(field, None)
        return value

    def _miss(self, field: str, reason: str) -> None:
        since = time.monotonic() - self._began
        self._missing.setdefault(field, f"since {since:.0f} s: {reason}" if since >= 1.0 else f"since start: {reason}")

    def _text(self, path: str) -> str:
        with (self._root / path).open("rb") as file:
            return file.read(FIRST_BYTES).decode("utf-8", "replace")

    def _read_rate(self) -> float | None:
        if self._rate is None:
            raise LookupError("no rate loop is given")
        return self._rate()

    def _read_load(self) -> float:
        running = self._text("proc/loadavg").split()[3].partition("/")[0]
        return max(0.0, float(running) - 1.0)

    def _read_steal(self) -> float | None:
        """None at the first reading, which has nothing to compare with."""
        words = self._text("proc/stat").split("\n", 1)[0].split()
        if words[0] != "cpu":
            raise ValueError("proc/stat does not begin with the line of all processors")
        # user nice system idle iowait irq softirq steal; guest times are counted within user and nice
        ticks = [float(word) for word in words[1:9]]
        if len(ticks) < 8:
            raise LookupError("this kernel does not count stolen time")
        before, self._ticks = self._ticks, (ticks[7], sum(ticks))
        if before is None or self._ticks[1] <= before[1]:
            return None
        return 100.0 * max(0.0, self._ticks[0] - before[0]) / (self._ticks[1] - before[1])

    def _read_mhz(self) -> float:
        try:
            return float(self._text("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq")) / 1e3
        except OSError:
            found = [float(mhz) for mhz in _MHZ.findall(self._text("proc/cpuinfo"))]
            if not found:
                raise LookupError("neither cpufreq nor cpuinfo tells the frequency") from None
            return sum(found) / len(found)

    def _read_temperature(self) -> float:
        if self._temperature is None:
            raise LookupError("no processor sensor under sys/class/thermal or sys/class/hwmon")
        celsius = float(self._text(self._temperature)) / 1e3
        if not TEMPERATURES_C[0] < celsius < TEMPERATURES_C[1]:
            raise ValueError(f"{self._temperature} says {celsius:g} C")
        return celsius

    def _sensor(self) -> str | None:
        """Return the first sensor of the processor, as a path below the root."""
        for folder, name, value in (("hwmon", "name", "temp1_input"), ("thermal", "type", "temp")):
            for place in self._places(f"sys/class/{folder}"):
                try:
                    if _PACKAGE.search(self._text(f"{place}/{name}")):
                        self._text(f"{place}/{value}")
                        return f"{place}/{value}"
                except OSError:
                    continue
        return None

    def _places(self, folder: str) -> list[str]:
        try:
            return sorted(f"{folder}/{place.name}" for place in (self._root / folder).iterdir())
        except OSError:
            return []


def host(device: Device, rate: Rate | None = None) -> HostMonitor | None:
    """Watch this machine where it runs the kernels; a simulated device has none to watch."""
    return HostMonitor(rate) if device.kind == "cpu" else None


PLUGIN: MonitorFactory = host
