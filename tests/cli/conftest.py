"""Sessions of these tests live in memory where that is possible: a sync to a busy disk takes milliseconds."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cake_tui.store.lock import living_holder
from tests.cli.shell import Shell
from tests.engine.scripted import gone, until

MEMORY = Path("/dev/shm")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    where = MEMORY if os.access(MEMORY, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="cake-tui-test-", dir=where))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    made = Shell(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CAKE_TUI_SESSIONS", raising=False)
    for name in ("CAKE_TUI_LOCKS", "CAKE_TUI_WHO", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, made.environment[name])
    yield made
    for lock in made.sessions.glob("*/lock"):
        holder = living_holder(lock)
        if holder is not None:
            os.kill(holder.pid, signal.SIGKILL)
            until(lambda pid=holder.pid: gone(pid))
