"""Puts a stand-in for NVIDIA's library in front of the real one on the path."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

STANDIN = Path(__file__).with_name("standin")


def stand_in(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module that ``import pynvml`` finds until the test ends, with two calm GPUs."""
    monkeypatch.syspath_prepend(str(STANDIN))
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    module: Any = importlib.import_module("pynvml")
    del sys.modules["pynvml"]  # or the next line would bring this one back at the end where none was there before
    monkeypatch.setitem(sys.modules, "pynvml", module)
    module.reset()
    return module
