"""A shell of its own for each test, in memory where that is possible, as the cases have."""

from __future__ import annotations

from tests.cases.conftest import shell, tmp_path

__all__ = ["shell", "tmp_path"]
