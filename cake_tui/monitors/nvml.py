"""NVML: whether NVIDIA's driver answers and which GPUs it lists. The one place that imports pynvml."""

from __future__ import annotations

from typing import Any

import msgspec


class NvmlState(msgspec.Struct, frozen=True):
    """What NVML said; `error` is its exact text, empty where it answered."""

    driver: str = ""
    gpus: tuple[str, ...] = ()  # name and UUID
    error: str = ""


def state() -> NvmlState:
    """Ask NVML once and close it again; never raises for a machine without a GPU or driver."""
    try:
        import pynvml
    except ImportError as error:
        return NvmlState(error=str(error))
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return NvmlState(error=f"nvmlInit: {error}")
    try:
        driver = _text(pynvml.nvmlSystemGetDriverVersion())
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        gpus = tuple(
            f"{_text(pynvml.nvmlDeviceGetName(one))} {_text(pynvml.nvmlDeviceGetUUID(one))}" for one in handles
        )
    except pynvml.NVMLError as error:
        return NvmlState(error=str(error))
    finally:
        pynvml.nvmlShutdown()
    return NvmlState(driver, gpus)


def _text(value: Any) -> str:
    """Older versions of the library give bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
