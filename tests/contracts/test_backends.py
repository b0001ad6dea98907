"""What every backend keeps, whichever the registry finds; one whose machine is missing skips itself, saying so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from cake_tui import registry
from cake_tui.backends import Backend, Compiler
from cake_tui.cli import main
from cake_tui.errors import ENVIRONMENT, UserError
from cake_tui.model.device import Device, Target
from cake_tui.monitors.host import host

BACKENDS = registry.names("backends")
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _locks_of_our_own(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    # A session that runs on this machine meanwhile has its device; checking a small kernel beside it harms neither.
    monkeypatch.setenv("CAKE_TUI_LOCKS", str(tmp_path_factory.mktemp("locks")))


@pytest.fixture(params=BACKENDS)
def here(request: pytest.FixtureRequest) -> tuple[Backend, Device]:
    """A backend and its first device, where this machine has one."""
    backend: Backend = registry.load("backends", request.param)
    try:
        return backend, backend.devices()[0]
    except UserError as error:
        missing = error
    _says_what_is_missing(missing)
    pytest.skip(f"{request.param}: {missing}")


def _says_what_is_missing(error: UserError) -> None:
    assert error.exit_code == ENVIRONMENT
    assert len(str(error).splitlines()) == 1


@pytest.mark.parametrize("name", BACKENDS)
def test_a_backend_bears_its_folders_name(name: str) -> None:
    backend: Backend = registry.load("backends", name)
    assert backend.name == name
    assert backend.target in get_args(Target)


@pytest.mark.parametrize("name", BACKENDS)
def test_listing_devices_loads_nothing_heavy(name: str) -> None:
    code = (
        "import sys; from cake_tui import registry\n"
        "from cake_tui.errors import UserError\n"
        f"try: registry.load('backends', {name!r}).devices()\n"
        "except UserError: pass\n"
        "print(*sorted(sys.modules))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert not {"numpy", "cupy", "textual", "openai"} & set(done.stdout.split())


def test_devices_are_told_apart_and_written_down(here: tuple[Backend, Device]) -> None:
    backend, _ = here
    devices = backend.devices()
    assert len({device.uuid for device in devices}) == len(devices)
    for device in devices:
        assert device.target == backend.target
        assert device.name
        assert device.arch
        assert device.cores > 0
        assert msgspec.json.decode(msgspec.json.encode(device), type=Device) == device
    assert backend.devices() == devices


def test_the_test_compile_names_the_compiler(here: tuple[Backend, Device]) -> None:
    backend, device = here
    try:
        found = backend.probe(device)
    except UserError as error:
        missing = error
    else:
        missing = None
    if missing is not None:
        _says_what_is_missing(missing)
        pytest.skip(str(missing))
    assert isinstance(found, Compiler)
    assert found.command
    assert found.version


def test_a_kernel_is_built_and_checked(
    here: tuple[Backend, Device], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The same command that people type; the check of its own must pass first."""
    backend, device = here
    monkeypatch.chdir(tmp_path)
    try:
        backend.probe(device)
    except UserError as error:
        pytest.skip(str(error))
    check = ["check", "matmul_bias_relu", "--backend", backend.name, "--shape", "M=33,N=18,K=21", "--json"]
    code = main(check)
    found = json.loads(capfd.readouterr().out)
    assert code == 0, found
    assert found["passed"] is True
    assert found["self_test"]
    assert all(case["expected"] == case["found"] for case in found["self_test"])
    assert not list(tmp_path.iterdir())


def test_a_device_is_chosen_by_number_and_by_name(
    here: tuple[Backend, Device], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    backend, _ = here
    monkeypatch.chdir(tmp_path)
    check = ["check", "matmul_bias_relu", "--backend", backend.name, "--device", "no such device"]
    assert main(check) == 2
    assert "Traceback" not in capfd.readouterr().err


def test_watching_a_device_is_not_the_backends_work(here: tuple[Backend, Device]) -> None:
    _, device = here
    assert (host(device) is None) == (device.kind != "cpu")  # a GPU has a monitor of its own
