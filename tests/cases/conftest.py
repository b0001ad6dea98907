"""Working folders in memory, a shell of its own for each case, and one recorded session for all to damage."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases.shell import Shell, copied, end_all

MEMORY = Path("/dev/shm")


def _folder() -> Path:
    # A sync to a busy disk takes milliseconds, and a session syncs often.
    return Path(tempfile.mkdtemp(prefix="cake-tui-case-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None))


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    folder = _folder()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    made = Shell(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("CAKE_TUI_SESSIONS", "CC", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("CAKE_TUI_LOCKS", "CAKE_TUI_WHO", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, made.environment[name])
    yield made
    end_all(made)


@pytest.fixture(scope="session")
def recording() -> Iterator[Path]:
    """A finished session of ten candidates; copy it before doing anything to it."""
    folder = _folder()
    shell = Shell(folder)
    yield shell.headless(candidates=10, seed=4)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def recorded(shell: Shell, recording: Path) -> Path:
    """This test's own copy of the recorded session, under the name ``a``."""
    return copied(recording, shell.sessions, "a")
