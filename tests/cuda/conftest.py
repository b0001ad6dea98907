"""An executor over the first GPU, shared by the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cake_tui.backends.cuda import PLUGIN
from cake_tui.executors.local import Local
from cake_tui.model.device import Device


@pytest.fixture(scope="session")
def device() -> Device:
    return PLUGIN.devices()[0]


@pytest.fixture(scope="module")
def executor(device: Device, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    with Local("cuda", tmp_path_factory.mktemp("store"), device) as made:
        yield made
