"""NVML: a GPU's clocks, power, heat, throttle reasons, health and other users. The one place that imports pynvml.

GPUs are found by UUID: NVML numbers them by bus, CUDA by speed and visibility. What one query cannot say never stops
the others; a query that the driver does not support is asked once.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from cake_tui.model.device import Device
from cake_tui.model.measure import THROTTLE_REASONS, Clock
from cake_tui.monitors import MonitorFactory
from cake_tui.monitors._users import Users

RETRY_S = 10.0  # between two tries to reach a driver that did not answer
HEALTH_EVERY_S = 5.0
GRAPHICS, SM, MEMORY = 0, 1, 2  # NVML's clock domains
# Not there on this device or for this user, whatever is asked again: function not found, not supported, no permission.
NEVER = frozenset({3, 4, 13})
GONE = {15: "GPU is lost", 16: "GPU needs a reset"}
# Cumulative times a reason held, nanoseconds: NVML's field numbers.
COUNTERS = {
    74: "power cap", 75: "thermal", 76: "sync boost", 77: "board limit", 79: "reliability",
    269: "software thermal slowdown", 270: "hardware thermal slowdown", 271: "power brake",
}  # fmt: skip
HEALTH = {
    4: "uncorrected ECC errors since the driver was loaded", 143: "rows remapped after uncorrected errors",
    144: "a row remap waits for a reset", 145: "a row remap failed", 230: "the driver asks for recovery (action {})",
}  # fmt: skip
_TYPES = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
_OTHER_PACKAGE = "pynvml is another package than nvidia-ml-py: pip uninstall pynvml, pip install nvidia-ml-py"


class NvmlMonitor:
    """Readings never raise; `missing` says what cannot be read, since when and why.

    `read` adds the processes of others, asked for twice a second at most; `read_device` leaves them out and takes
    some microseconds. `family` is the process whose descendants are no foreigners.
    """

    def __init__(self, device: Device, family: int | None = None) -> None:
        self._uuid = device.uuid
        self._users = Users(family if family is not None else os.getpid())
        self._began = time.monotonic()
        self._nvml: Any = None
        self._handle: Any = None
        self._error = ""
        self._tried = float("-inf")
        self._unsupported: set[str] = set()
        self._missing: dict[str, str] = {}
        self._health: tuple[str, ...] = ()
        self._health_due = 0.0
        self._sm_max: float | None = None

    def read(self) -> Clock:
        """Take one reading now, with the processes of others and the device's health."""
        clock = self.read_device()
        if self._handle is None:
            return self._lack(clock, ("foreign_processes", "foreign_bytes"))
        found = self._users.look(self._listed)
        for name, value in (("foreign_processes", found.processes), ("foreign_bytes", found.bytes)):
            self._note(name, value, found.why)
        if time.monotonic() >= self._health_due:
            self._health_due = time.monotonic() + HEALTH_EVERY_S
            self._health = self._read_health()
        return msgspec.structs.replace(
            clock, foreign_processes=found.processes, foreign_bytes=found.bytes, health=(*clock.health, *self._health)
        )

    def read_device(self) -> Clock:
        """Take one reading of clocks, power, temperature, reasons and counters."""
        now = time.monotonic()
        if self._handle is None and not self._open(now):
            fields = ("sm_mhz", "memory_mhz", "temperature_c", "power_w")
            return self._lack(Clock(mono=now, read_mono=now, error=self._error), fields)
        gone: list[str] = []
        sm = self._ask("sm_mhz", gone, "nvmlDeviceGetClockInfo", SM)
        memory = self._ask("memory_mhz", gone, "nvmlDeviceGetClockInfo", MEMORY)
        power = self._ask("power_w", gone, "nvmlDeviceGetPowerUsage")
        limit = self._ask("power_limit_w", gone, "nvmlDeviceGetEnforcedPowerLimit")
        clock = Clock(
            mono=now,
            read_mono=now,
            sm_mhz=sm,
            memory_mhz=memory,
            sm_max_mhz=self._most(gone),
            power_w=None if power is None else power / 1e3,
            power_limit_w=None if limit is None else limit / 1e3,
            temperature_c=self._temperature(gone),
            reasons=self._reasons(gone),
            # Most never held: what is 0 goes without saying in every record of a reading.
            counters=tuple((COUNTERS[field], int(value)) for field, value in self._fields(COUNTERS, gone) if value > 0),
            health=tuple(dict.fromkeys(gone)),
            error="" if sm is not None else self._missing.get("sm_mhz", "no clock").partition(": ")[2],
        )
        if gone:
            self._handle = None  # a GPU that was reset gets a new handle
        return clock

    def missing(self) -> dict[str, str]:
        """Field name -> why it cannot be read and since when, in seconds after the start."""
        return dict(self._missing)

    # -- the driver --------------------------------------------------------------------------------------

    def _open(self, now: float) -> bool:
        """Reach the driver and find the device; False where that fails, with the driver's words in `_error`."""
        if now - self._tried < RETRY_S:
            return False
        self._tried = now
        try:
            nvml = importlib.import_module("pynvml")
        except ImportError as error:
            self._error = str(error)
            return False
        if not hasattr(nvml, "nvmlDeviceGetFieldValues"):
            self._error = _OTHER_PACKAGE
            return False
        try:
            nvml.nvmlInit()
            self._handle = _find(nvml, self._uuid)
        except nvml.NVMLError as error:
            self._error = f"{type(error).__name__}: {error}"
            return False
        except LookupError as error:
            self._error = str(error)
            return False
        self._nvml, self._error = nvml, ""
        return True

    def _ask(self, field: str, gone: list[str], name: str, *arguments: Any) -> float | None:
        """Ask one thing; None where it has no answer, with the driver's words in `missing`."""
        if name in self._unsupported:
            return None
        key = f"{name}{arguments}"
        if key in self._unsupported:
            return None
        function = getattr(self._nvml, name, None)
        if function is None:
            self._unsupported.add(name)
            return self._note(field, None, f"{name} is not in this pynvml")
        try:
            value = float(function(self._handle, *arguments))
        except self._nvml.NVMLError as error:
            code = getattr(error, "value", None)
            if code in NEVER:
                self._unsupported.add(key)
            elif code in GONE:
                gone.append(GONE[code])
            return self._note(field, None, f"{type(error).__name__}: {error}")
        except (TypeError, ValueError) as error:
            return self._note(field, None, f"{name}: {error}")
        return self._note(field, value, "")

    def _most(self, gone: list[str]) -> float | None:
        if self._sm_max is None:
            self._sm_max = self._ask("sm_max_mhz", gone, "nvmlDeviceGetMaxClockInfo", SM)
        return self._sm_max

    def _temperature(self, gone: list[str]) -> float | None:
        found = self._ask("", gone, "nvmlDeviceGetTemperatureV", 0)
        if found is not None:
            return self._note("temperature_c", found, "")
        return self._ask("temperature_c", gone, "nvmlDeviceGetTemperature", 0)

    def _reasons(self, gone: list[str]) -> tuple[str, ...]:
        """Return why the clock is what it is; bits that nobody has named yet keep their number."""
        mask = self._ask("", gone, "nvmlDeviceGetCurrentClocksEventReasons")
        if mask is None:
            mask = self._ask("", gone, "nvmlDeviceGetCurrentClocksThrottleReasons")
        bits = [1 << at for at in range(64) if mask is not None and int(mask) >> at & 1]
        return tuple(THROTTLE_REASONS.get(bit, f"unknown reason 0x{bit:x}") for bit in bits)

    def _fields(self, wanted: Iterable[int], gone: list[str]) -> list[tuple[int, float]]:
        """Return the fields that have a value; the call succeeds and each field carries its own return code."""
        asked = [field for field in wanted if f"field {field}" not in self._unsupported]
        if not asked or "nvmlDeviceGetFieldValues" in self._unsupported:
            return []
        try:
            values = self._nvml.nvmlDeviceGetFieldValues(self._handle, asked)
        except self._nvml.NVMLError as error:
            code = getattr(error, "value", None)
            if code in NEVER:
                self._unsupported.add("nvmlDeviceGetFieldValues")
            elif code in GONE:
                gone.append(GONE[code])
            return []
        found = []
        for field, one in zip(asked, values):
            if one.nvmlReturn in NEVER:
                self._unsupported.add(f"field {field}")
            elif one.nvmlReturn == 0 and 0 <= one.valueType < len(_TYPES):
                found.append((field, float(getattr(one.value, _TYPES[one.valueType]))))
        return found

    def _read_health(self) -> tuple[str, ...]:
        return tuple(
            HEALTH[field].format(int(value)) if field == 230 else f"{HEALTH[field]}: {int(value)}"
            for field, value in self._fields(HEALTH, [])
            if value > 0
        )

    def _listed(self) -> tuple[dict[int, float | None], str]:
        """Return the processes on the device with their bytes, and why where nobody tells."""
        found: dict[int, float | None] = {}
        why = ""
        answered = False
        for kind in ("Compute", "Graphics", "MPSCompute"):
            name = f"nvmlDeviceGet{kind}RunningProcesses"
            function: Callable[[Any], Any] | None = getattr(self._nvml, name, None)
            if function is None or name in self._unsupported:
                continue
            try:
                listed = function(self._handle)
            except self._nvml.NVMLError as error:
                if getattr(error, "value", None) in NEVER:
                    self._unsupported.add(name)
                why = why or f"{type(error).__name__}: {error}"
                continue
            answered = True
            for one in listed:
                used = getattr(one, "usedGpuMemory", None)
                found[int(one.pid)] = None if used is None else float(used)
        return found, "" if answered else why or "this driver lists no processes"

    # -- what cannot be read -----------------------------------------------------------------------------

    def _note(self, field: str, value: float | None, why: str) -> float | None:
        if value is not None:
            self._missing.pop(field, None)
        elif field:
            since = time.monotonic() - self._began
            when = f"since {since:.0f} s" if since >= 1.0 else "since start"
            self._missing.setdefault(field, f"{when}: {why}")
        return value

    def _lack(self, clock: Clock, fields: tuple[str, ...]) -> Clock:
        for field in fields:
            self._note(field, None, self._error)
        return clock


def _find(nvml: Any, uuid: str) -> Any:
    """Return the handle of a UUID, of the whole GPU for a MIG instance; raises LookupError or NVMLError."""
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
    except nvml.NVMLError:
        # Old versions take bytes, or do not find what they list: compare them one by one.
        handle = None
        listed = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        names = [_text(nvml.nvmlDeviceGetUUID(one)) for one in listed]
        handle = next((one for one, name in zip(listed, names) if name.lower() == uuid.lower()), None)
        if handle is None:
            raise LookupError(f"NVML lists no GPU {uuid}: {', '.join(names) or 'none at all'}") from None
    if uuid.startswith("MIG-") and hasattr(nvml, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle"):
        try:
            return nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)  # all instances share its clocks
        except nvml.NVMLError:
            return handle
    return handle


# -- for doctor ----------------------------------------------------------------------------------------------


class Gpu(msgspec.Struct, frozen=True):
    """What NVML says of one GPU's set-up; None where it does not say."""

    name: str
    uuid: str
    persistence: bool | None = None
    mig: bool | None = None
    processes: int | None = None  # compute and graphics
    display: bool | None = None
    sm_mhz: float | None = None
    sm_max_mhz: float | None = None
    compute_mode: int | None = None


class NvmlState(msgspec.Struct, frozen=True):
    """What NVML said; `error` is its exact text, empty where it answered."""

    driver: str = ""
    gpus: tuple[Gpu, ...] = ()
    error: str = ""


def state() -> NvmlState:
    """Ask NVML once and close it again; never raises for a machine without a GPU or driver."""
    try:
        found = importlib.import_module("pynvml")
    except ImportError as error:
        return NvmlState(error=str(error))
    if not hasattr(found, "nvmlDeviceGetFieldValues"):
        return NvmlState(error=_OTHER_PACKAGE)
    try:
        found.nvmlInit()
    except found.NVMLError as error:
        return NvmlState(error=f"nvmlInit: {type(error).__name__}: {error}")
    try:
        driver = _text(found.nvmlSystemGetDriverVersion())
        handles = [found.nvmlDeviceGetHandleByIndex(index) for index in range(found.nvmlDeviceGetCount())]
        return NvmlState(driver, tuple(_gpu(found, handle) for handle in handles))
    except found.NVMLError as error:
        return NvmlState(error=f"{type(error).__name__}: {error}")
    finally:
        found.nvmlShutdown()


def _gpu(found: Any, handle: Any) -> Gpu:
    def ask(name: str, *arguments: Any) -> Any:
        try:
            return getattr(found, name)(handle, *arguments)
        except (found.NVMLError, AttributeError):
            return None

    mig, persistence = ask("nvmlDeviceGetMigMode"), ask("nvmlDeviceGetPersistenceMode")
    display = ask("nvmlDeviceGetDisplayActive")
    listed = [ask(f"nvmlDeviceGet{kind}RunningProcesses") for kind in ("Compute", "Graphics")]
    pids = {int(one.pid) for processes in listed for one in processes or ()}
    return Gpu(
        name=_text(found.nvmlDeviceGetName(handle)), uuid=_text(found.nvmlDeviceGetUUID(handle)),
        persistence=None if persistence is None else bool(persistence), mig=None if mig is None else bool(mig[0]),
        processes=len(pids) if any(processes is not None for processes in listed) else None,
        display=None if display is None else bool(display), sm_mhz=ask("nvmlDeviceGetClockInfo", SM),
        sm_max_mhz=ask("nvmlDeviceGetMaxClockInfo", SM), compute_mode=ask("nvmlDeviceGetComputeMode"),
    )  # fmt: skip


def _text(value: Any) -> str:
    """Older versions of the library give bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


# -- the plug-in ------------------------------------------------------------------------------------------


def nvml(device: Device) -> NvmlMonitor | None:
    """Watch an NVIDIA GPU; other devices have their own monitors."""
    return NvmlMonitor(device) if device.kind == "cuda" else None


PLUGIN: MonitorFactory = nvml
