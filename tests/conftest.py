"""What all tests share: markers that skip themselves with the reason, golden files, the size of soak tests."""

from __future__ import annotations

import functools
import os
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from cake_tui.backends.cpu.compilers import find_compiler
from cake_tui.errors import UserError


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files instead of comparing with them")
    parser.addoption("--soak", action="store_true", help="run soak tests at full size instead of a twentieth")


def pytest_configure(config: pytest.Config) -> None:
    """Give the tests' processes device locks of their own, and signals their usual meaning, as in the foreground."""
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("COLUMNS", "LINES"):  # that a worker is told; terminals of the tests have sizes of their own
        os.environ.pop(name, None)
    locks = tempfile.TemporaryDirectory(prefix="cake-tui-locks-")  # one a worker: they hold the same CPU
    config.add_cleanup(locks.cleanup)
    os.environ["CAKE_TUI_LOCKS"] = locks.name


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what this machine cannot run, naming what is missing."""
    for item in items:
        for marker, missing in (("cc", _no_compiler), ("cuda", _no_gpu)):
            if item.get_closest_marker(marker) is not None and (reason := missing()):
                item.add_marker(pytest.mark.skip(reason=reason))
        full_only = "soak_share" not in getattr(item, "fixturenames", ())
        if item.get_closest_marker("soak") is not None and full_only and not config.getoption("--soak"):
            item.add_marker(pytest.mark.skip(reason="full size only: run with --soak"))


@pytest.fixture
def soak_share(request: pytest.FixtureRequest) -> float:
    """The share of its full size that a soak test runs at: all of it with --soak, else a twentieth."""
    return 1.0 if request.config.getoption("--soak") else 0.05


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """``golden(path, text)`` compares text with a file kept beside the tests; --update-golden rewrites the file."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"{path} is missing; make it with --update-golden"
        assert text == path.read_text(encoding="utf-8")

    return compare


@functools.cache
def _no_compiler() -> str:
    try:
        find_compiler()
    except UserError as error:
        return str(error).splitlines()[0]
    return ""


@functools.cache
def _no_gpu() -> str:
    import pynvml

    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        return f"no NVIDIA GPU: {error}"
    return "" if count else "no NVIDIA GPU: the driver lists none"
