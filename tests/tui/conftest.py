"""Sample sessions for the viewer's tests: made once a module where nobody writes to them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cake_tui.store.lock import Lock
from cake_tui.tui.app import CakeApp
from cake_tui.tui.bridge import Bridge, machine_now
from tests.tui.sample import Sample, running


@pytest.fixture(scope="session")
def finished_sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """A session in full swing; read only."""
    return running(tmp_path_factory.mktemp("sessions") / "first")


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    """A session of one's own to add to."""
    return running(tmp_path / "first", 60)


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Sample]:
    """A session of this very moment whose engine lives, as far as lock and heartbeat tell."""
    sample = running(tmp_path / "live" / "first", 60, began=machine_now())
    lock = Lock(sample.folder / "lock")
    assert lock.take()
    lock.sign(what="first", who="sam")
    over = threading.Event()

    def beat() -> None:
        while not over.wait(0.5):
            sample.clock = max(sample.clock, time.monotonic())
            sample.beat(1)

    heart = threading.Thread(target=beat, daemon=True)
    heart.start()
    yield sample
    over.set()
    heart.join()
    lock.release()


def app_of(sample: Sample, *, alive: bool = True, **options: object) -> CakeApp:
    """A viewer on a sample, one second after its last event."""
    bridge = Bridge(sample.folder, now=sample.now, alive=lambda _: alive)
    return CakeApp(bridge, you="sam", **options)  # type: ignore[arg-type]
