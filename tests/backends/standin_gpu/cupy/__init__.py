"""A stand-in for CuPy beside the stand-in driver: what lies on that device lies in host memory, as numpy's arrays."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

__version__ = "stand-in"


class ndarray(np.ndarray):
    """numpy's array; `data.ptr` is its address."""

    @property
    def data(self) -> Any:  # type: ignore[override]
        return SimpleNamespace(ptr=self.ctypes.data)


def _placed(value: Any) -> Any:
    return value.view(ndarray) if isinstance(value, np.ndarray) else value


def asarray(value: Any, dtype: Any = None) -> Any:
    return _placed(np.array(value, dtype=dtype))


def get_default_memory_pool() -> Any:
    return SimpleNamespace(free_all_blocks=lambda: None)


def __getattr__(name: str) -> Any:
    found = getattr(np, name)
    if isinstance(found, type) or not callable(found):
        return found
    return lambda *values, **named: _placed(found(*values, **named))
