"""The stand-in for NVIDIA's library, in front of the real one on the path."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

STANDIN = Path(__file__).with_name("standin")


@pytest.fixture
def pynvml(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module that ``import pynvml`` finds, with two calm GPUs."""
    return stand_in(monkeypatch)


def stand_in(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put the stand-in in front of the path until the test ends."""
    monkeypatch.syspath_prepend(str(STANDIN))
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    module = importlib.import_module("pynvml")
    monkeypatch.setitem(sys.modules, "pynvml", module)
    module.reset()
    return module
