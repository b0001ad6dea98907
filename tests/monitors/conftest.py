"""The stand-in for NVIDIA's library, in front of the real one on the path."""

from __future__ import annotations

from typing import Any

import pytest

from tests.monitors.stand_in import stand_in


@pytest.fixture
def pynvml(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module that ``import pynvml`` finds, with two calm GPUs."""
    return stand_in(monkeypatch)
