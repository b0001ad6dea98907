"""A stand-in for the library of this name, found on the path like the real one: two GPUs that tests change."""

from __future__ import annotations

from typing import Any

CODES = {
    3: "NotSupported", 4: "NoPermission", 6: "NotFound", 12: "LibraryNotFound", 13: "FunctionNotFound", 15: "GpuIsLost",
    16: "ResetRequired", 18: "LibRmVersionMismatch", 999: "Unknown",
}  # fmt: skip


class NVMLError(Exception):
    """As the real one: a class a code, the code in `value`."""

    def __init__(self, value: int) -> None:
        super().__init__(CODES[value])
        self.value = value


KINDS = {code: type(f"NVMLError_{name}", (NVMLError,), {}) for code, name in CODES.items()}


class Process:
    """A process on a GPU."""

    def __init__(self, pid: int, used: int | None = None) -> None:
        self.pid, self.usedGpuMemory = pid, used


class Gpu:
    """One GPU's state; what is in `fails` raises that code, by the function's name."""

    def __init__(self, uuid: str, sm: int = 1980) -> None:
        self.uuid = uuid
        self.sm, self.memory, self.sm_max = sm, 3201, 1980
        self.power_mw, self.limit_mw, self.celsius = 300_000, 700_000, 45
        self.reasons = 0
        self.fields: dict[int, int] = dict.fromkeys((4, 74, 75, 76, 77, 79, 269, 270, 271), 0)
        self.compute: list[Process] = []
        self.graphics: list[Process] = []
        self.fails: dict[str, int] = {}


OURS = "GPU-11111111-0000-0000-0000-000000000000"
OTHER = "GPU-00000000-0000-0000-0000-000000000000"
GPUS: list[Gpu] = []
INIT_FAILS: list[int] = []
CALLS: list[str] = []


def reset() -> Gpu:
    """Two GPUs as they are when nothing disturbs; ours is NVML's second. Returns ours."""
    GPUS[:] = [Gpu(OTHER, 210), Gpu(OURS)]
    INIT_FAILS.clear()
    CALLS.clear()
    return GPUS[1]


def _fail(code: int) -> None:
    raise KINDS[code](code)


def _called(gpu: Gpu, name: str) -> None:
    CALLS.append(name)
    if name in gpu.fails:
        _fail(gpu.fails[name])


def nvmlInit() -> None:
    CALLS.append("nvmlInit")
    if INIT_FAILS:
        _fail(INIT_FAILS[0])


def nvmlShutdown() -> None:
    CALLS.append("nvmlShutdown")


def nvmlSystemGetDriverVersion() -> str:
    return "580.00"


def nvmlDeviceGetCount() -> int:
    return len(GPUS)


def nvmlDeviceGetHandleByIndex(index: int) -> Gpu:
    return GPUS[index]


def nvmlDeviceGetHandleByUUID(uuid: str) -> Gpu:
    found = next((gpu for gpu in GPUS if gpu.uuid == uuid), None)
    if found is None:
        _fail(6)
    assert found is not None
    _called(found, "nvmlDeviceGetHandleByUUID")
    return found


def nvmlDeviceGetUUID(gpu: Gpu) -> str:
    return gpu.uuid


def nvmlDeviceGetName(gpu: Gpu) -> bytes:
    return b"NVIDIA H200"


def nvmlDeviceGetClockInfo(gpu: Gpu, domain: int) -> int:
    _called(gpu, "nvmlDeviceGetClockInfo")
    return {0: gpu.sm, 1: gpu.sm, 2: gpu.memory}[domain]


def nvmlDeviceGetMaxClockInfo(gpu: Gpu, domain: int) -> int:
    _called(gpu, "nvmlDeviceGetMaxClockInfo")
    return gpu.sm_max


def nvmlDeviceGetPowerUsage(gpu: Gpu) -> int:
    _called(gpu, "nvmlDeviceGetPowerUsage")
    return gpu.power_mw


def nvmlDeviceGetEnforcedPowerLimit(gpu: Gpu) -> int:
    _called(gpu, "nvmlDeviceGetEnforcedPowerLimit")
    return gpu.limit_mw


def nvmlDeviceGetTemperature(gpu: Gpu, sensor: int) -> int:
    _called(gpu, "nvmlDeviceGetTemperature")
    return gpu.celsius


def nvmlDeviceGetCurrentClocksEventReasons(gpu: Gpu) -> int:
    _called(gpu, "nvmlDeviceGetCurrentClocksEventReasons")
    return gpu.reasons


def nvmlDeviceGetComputeRunningProcesses(gpu: Gpu) -> list[Process]:
    _called(gpu, "nvmlDeviceGetComputeRunningProcesses")
    return gpu.compute


def nvmlDeviceGetGraphicsRunningProcesses(gpu: Gpu) -> list[Process]:
    _called(gpu, "nvmlDeviceGetGraphicsRunningProcesses")
    return gpu.graphics


class _Value:
    def __init__(self, value: int) -> None:
        self.ullVal = value


class _Field:
    def __init__(self, value: int | None) -> None:
        self.nvmlReturn, self.valueType = (0, 3) if value is not None else (3, 0)
        self.value = _Value(value or 0)


def nvmlDeviceGetFieldValues(gpu: Gpu, fields: list[int]) -> list[Any]:
    _called(gpu, "nvmlDeviceGetFieldValues")
    return [_Field(gpu.fields.get(field)) for field in fields]


def nvmlDeviceGetPersistenceMode(gpu: Gpu) -> int:
    return 0


def nvmlDeviceGetMigMode(gpu: Gpu) -> list[int]:
    _called(gpu, "nvmlDeviceGetMigMode")
    return [1, 1]


def nvmlDeviceGetDisplayActive(gpu: Gpu) -> int:
    return 1


def nvmlDeviceGetComputeMode(gpu: Gpu) -> int:
    return 3


reset()
