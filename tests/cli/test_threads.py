"""The setting `threads`: how many cores a session's kernels use, for as long as the session lives."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_tui import registry
from cake_tui.cli._device import Chosen, with_threads
from cake_tui.config import Settings
from cake_tui.engine.desk import changed_settings
from cake_tui.errors import UserError
from cake_tui.store.snapshot import fold
from tests.cases.shell import Shell


@pytest.mark.parametrize(("threads", "cores"), [(0, 2), (1, 1), (2, 2), (64, 2)])
def test_a_device_lends_at_most_its_cores(threads: int, cores: int) -> None:
    backend = registry.load("backends", "simulated")
    chosen = Chosen("simulated", backend, backend.devices()[0])
    assert with_threads(chosen, threads).device.cores == cores


def test_a_session_keeps_the_threads_it_began_with(shell: Shell) -> None:
    shell("run", "--backend", "simulated", "--name", "a", "--candidates", "2", "--set", "threads=1", "--headless")
    history = fold(Path(shell.sessions / "a")).history
    assert history.device.cores == 1
    assert history.settings["threads"] == 1
    with pytest.raises(UserError, match='"threads": found 2, but the session began with 1'):
        changed_settings(history.settings, {"threads": 2})
    assert changed_settings(Settings().flat(), {"threads": 0, "round": 6})[1] == (("round", "4", "6"),)
