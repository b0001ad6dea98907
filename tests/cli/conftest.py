"""Sessions of these tests live in memory where that is possible: a sync to a busy disk takes milliseconds."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    where = MEMORY if os.access(MEMORY, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="cake-tui-test-", dir=where))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
