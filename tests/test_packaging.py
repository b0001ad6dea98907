"""What is installed is the whole product: built as a wheel, installed into an empty folder, run in another."""

from __future__ import annotations

import email
import email.message
import importlib.util
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from cake_tui import __version__

ROOT = Path(__file__).parents[1]
BUILD = "import sys; from hatchling.build import {hook}; print({hook}(sys.argv[1]))"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None,
    reason="no hatchling here to build a wheel with: pip install hatchling",
)


def _build(hook: str, source: Path, folder: Path) -> Path:
    """Build by the same call that pip makes, with what is installed here: no network."""
    done = subprocess.run(
        [sys.executable, "-c", BUILD.format(hook=hook), str(folder)], cwd=source, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build("build_wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build("build_sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing but what pip puts there."""
    target = tmp_path_factory.mktemp("installed")
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run([*install, "--target", str(target), str(wheel)], check=True, capture_output=True, timeout=120)
    return target


def _cake(installed: Path, folder: Path, *arguments: str) -> str:
    locks = str(installed.parent / "locks")  # whoever tunes on this machine meanwhile
    environment = {**os.environ, "PYTHONPATH": str(installed), "COLUMNS": "200", "CAKE_TUI_LOCKS": locks}
    done = subprocess.run(
        [sys.executable, "-m", "cake_tui", *arguments], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_every_file_of_the_package_its_kernels_and_actions_are_inside(wheel: Path) -> None:
    names = _names(wheel)
    wanted = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "cake_tui").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"cake_tui/backends/cpu/runtime.c", "cake_tui/exporters/c/harness.c"} <= wanted
    assert wanted <= names
    kernels = {f"cake_tui/_data/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "kernels").rglob("*.*")}
    assert "cake_tui/_data/kernels/matmul_bias_relu/kernel.toml" in kernels
    assert {name for name in kernels if "__pycache__" not in name} <= names
    assert "cake_tui/_data/actions.toml" in names


def test_nothing_else_is_inside(wheel: Path) -> None:
    for name in _names(wheel):
        top = name.split("/")[0]
        assert top == "cake_tui" or top.endswith(".dist-info"), name
        assert "__pycache__" not in name
        assert "/tests/" not in name
        assert "sessions/" not in name


def test_the_installed_product_finds_its_kernels_and_actions(installed: Path, tmp_path: Path) -> None:
    code = "import cake_tui; print(cake_tui.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    where = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert Path(where.stdout.strip()).is_relative_to(installed)
    assert f"cake-tui {__version__}" in _cake(installed, tmp_path, "--version")
    listed = json.loads(_cake(installed, tmp_path, "actions", "--json"))
    assert "_data" in listed["file"]
    assert {"apply_tiling", "apply_register_block", "revert_last"} <= {action["name"] for action in listed["actions"]}
    assert not list(tmp_path.iterdir())


def test_the_installed_product_runs_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    run = ("run", "matmul_bias_relu", "--name", "first", "--backend", "simulated", "--headless", "--candidates", "4")
    assert "DONE" in _cake(installed, tmp_path, *run)
    status = json.loads(_cake(installed, tmp_path, "status", "first", "--json"))
    assert status["state"] == "done"
    assert status["kernel"] == "matmul_bias_relu"
    assert (tmp_path / "sessions/first/best/kernel.c").is_file()
    assert (installed / "bin/cake-tui").is_file()


@pytest.mark.cc
def test_the_installed_product_checks_every_kernel_it_brings(installed: Path, tmp_path: Path) -> None:
    folder = installed / "cake_tui/_data/kernels"
    kernels = sorted(path.parent.name for path in folder.glob("*/kernel.toml"))
    assert len(kernels) >= 3
    for kernel in kernels:
        checked = _cake(installed, tmp_path, "check", kernel, "--backend", "cpu")
        assert f"{kernel}: ok" in checked
        assert str(folder) in checked


def _metadata(text: str) -> email.message.Message:
    return email.message_from_string(text)


def test_the_metadata_says_what_is_needed(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (info,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        found = _metadata(archive.read(f"{info}/METADATA").decode())
        entry_points = archive.read(f"{info}/entry_points.txt").decode()
        assert any(name.startswith(f"{info}/licenses/LICENSE") for name in archive.namelist())
    assert (found["Name"], found["Version"]) == ("cake-tui", __version__)
    assert found["Requires-Python"] == ">=3.11"
    assert found["License-Expression"] == "Apache-2.0"
    assert {"cuda12", "cuda13", "zig", "test"} <= set(found.get_all("Provides-Extra") or ())
    requires = found.get_all("Requires-Dist") or []
    always = {one.split(">")[0].split("<")[0] for one in requires if "extra ==" not in one}
    assert always == {"msgspec", "numpy", "nvidia-ml-py", "openai", "textual", "tomli-w"}
    of = {extra: [one for one in requires if f"extra == '{extra}'" in one] for extra in ("cuda12", "cuda13", "zig")}
    assert [len(found) for found in of.values()] == [1, 1, 1]
    assert of["cuda12"][0].startswith("cupy-cuda12x")
    assert of["cuda13"][0].startswith("cupy-cuda13x")
    assert of["zig"][0].startswith("ziglang")
    assert "cake-tui = cake_tui.__main__:main" in entry_points


def test_a_wheel_made_of_the_source_archive_is_the_same(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
        archive.extractall(tmp_path, filter="data")
    (top,) = {name.split("/")[0] for name in names}
    for wanted in ("LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "actions.toml", "pyproject.toml"):
        assert f"{top}/{wanted}" in names
    assert not [name for name in names if "__pycache__" in name or "/sessions/first" in name]
    again = _build("build_wheel", tmp_path / top, tmp_path)
    assert _names(again) == _names(wheel)
