"""Fixtures: an executor of its own for each test, and odd programs in the compiler's place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cake_tui.backends.cpu import PLUGIN
from cake_tui.executors.local import Local


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[Local]:
    with Local("cpu", tmp_path / "store", PLUGIN.devices()[0], parallel=2) as made:
        yield made


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """``compiler(script)`` puts a shell script in the compiler's place; its own version is asked for as usual."""

    def install(script: str) -> None:
        path = tmp_path / f"cc-{len(list(tmp_path.glob('cc-*')))}"
        asked = 'case $word in --version) echo "odd compiler 1.0"; exit 0;; trifle.c) exec cc "$@";; esac'
        head = f"#!/bin/sh\nfor word; do {asked}; done\n"
        path.write_text(head + script, encoding="utf-8")
        path.chmod(0o755)
        monkeypatch.setenv("CC", str(path))

    return install
