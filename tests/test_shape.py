"""The shape of the tree: sizes, names, first lines, who may import what, and how little a command loads."""

from __future__ import annotations

import ast
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cake_tui import registry
from tests.tui.sample import running

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "cake_tui"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)
MOST_LINES = 400
FORBIDDEN_NAMES = {"utils", "util", "common", "base", "manager", "helpers", "misc"}
PLACES = (
    "agents", "backends", "cli", "executors", "exporters", "ir/edits", "ir/laws", "ir/lower", "monitors", "rules",
    "tui/panes", *(f"ir/build/{path.name}" for path in sorted((PACKAGE / "ir/build").iterdir()) if path.is_dir()),
)  # fmt: skip
# module that is imported -> places in the package that may
ONLY_IN = {
    "textual": ("tui/",),
    "rich": ("tui/",),
    "cupy": ("backends/cuda/",),
    "pynvml": ("monitors/nvml.py",),
    "openai": ("agents/llm.py", "agents/llm/"),
}
HEAVY = ("textual", "rich", "numpy", "openai", "pynvml", "cupy")


def _place(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def _sources() -> list[Path]:
    """Everything that is written here in Python or C: tracked files, where this is a git checkout."""
    folders = (PACKAGE, ROOT / "kernels", ROOT / "tests")
    found = [path for folder in folders for ending in ("*.py", "*.c", "*.cu", "*.h") for path in folder.rglob(ending)]
    return [path for path in found if "golden" not in path.parts and "__pycache__" not in path.parts]


@functools.cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def _nodes(path: Path) -> tuple[ast.AST, ...]:
    """What stands anywhere in a file and imports, or takes an attribute."""
    wanted = (ast.Import, ast.ImportFrom, ast.Attribute)
    return tuple(node for node in ast.walk(_tree(path)) if isinstance(node, wanted))


def test_there_is_something_to_look_at() -> None:
    assert len(MODULES) > 150
    assert all(registry.names(place) for place in PLACES if place != "ir/build/__pycache__")


def test_no_file_is_longer_than_a_person_reads() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8", errors="replace").splitlines()) for path in _sources()}
    long = {str(path.relative_to(ROOT)): length for path, length in lengths.items() if length > MOST_LINES}
    assert not long


def test_the_first_line_of_a_module_tells_its_purpose() -> None:
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        words = ast.get_docstring(_tree(path)) or ""
        first = words.partition("\n")[0]
        assert text.startswith(('"""', 'r"""')), _place(path)
        assert len(first) >= 20, _place(path)
        assert first.rstrip().endswith((".", "?", "!")), _place(path)


def test_every_folder_of_modules_is_a_package_that_says_what_it_is() -> None:
    for folder in {path.parent for path in MODULES}:
        assert (folder / "__init__.py").is_file(), folder


def test_names_say_what_things_are() -> None:
    for path in PACKAGE.rglob("*"):
        assert path.stem.lower().strip("_") not in FORBIDDEN_NAMES, path


@pytest.mark.parametrize("place", PLACES)
def test_plug_ins_have_a_docstring_and_end_with_what_they_offer(place: str) -> None:
    for name in registry.names(place):
        assert registry.docstring(place, name)
        path = PACKAGE / place / f"{name}.py"
        last = _tree(path if path.is_file() else PACKAGE / place / name / "__init__.py").body[-1]
        assert isinstance(last, ast.Assign | ast.AnnAssign), f"{place}/{name}: PLUGIN is not its last statement"
        target = last.targets[0] if isinstance(last, ast.Assign) else last.target
        assert isinstance(target, ast.Name), name
        assert target.id == "PLUGIN", f"{place}/{name}: PLUGIN is not its last statement"


def test_libraries_are_imported_only_where_they_belong() -> None:
    for path in MODULES:
        for name in _imports(path):
            allowed = ONLY_IN.get(name.partition(".")[0])
            assert allowed is None or _place(path).startswith(allowed), f"{_place(path)} imports {name}"


def test_the_environment_is_read_in_one_file() -> None:
    for path in MODULES:
        for node in _nodes(path):
            reads = isinstance(node, ast.Attribute) and node.attr in ("environ", "environb", "getenv", "getenvb")
            assert not reads or _place(path) == "config.py", f"{_place(path)}:{node.lineno}"  # type: ignore[attr-defined]


def test_nothing_is_imported_relatively_and_nothing_is_mocked() -> None:
    for path in (path for path in _sources() if path.suffix == ".py"):
        for node in _nodes(path):
            assert not (isinstance(node, ast.ImportFrom) and node.level), path
        assert not [name for name in _imports(path) if name.startswith(("unittest.mock", "mock"))], path


def _imports(path: Path) -> Iterator[str]:
    for node in _nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


# --- what a command loads -----------------------------------------------------------------------------

LOADED = "import sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"


def _loaded(code: str, folder: Path, *arguments: str) -> set[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{LOADED}", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("module", ["cake_tui", "cake_tui.cli", "cake_tui.registry", "cake_tui.ir", "cake_tui.store"])
def test_importing_loads_nothing_heavy(module: str, tmp_path: Path) -> None:
    found = _loaded(f"import {module}", tmp_path)
    assert "cake_tui" in found
    assert not found & set(HEAVY)


@pytest.mark.parametrize(
    "arguments",
    [
        ("status", "first"), ("status",), ("list",), ("pause", "first"), ("inject", "first", "apply_unroll(4)"),
        ("stop", "first"), ("mark", "first", "a note"), ("show", "first"), ("actions",), ("--help",), ("run", "--help"),
        (),
    ],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.parametrize("there", [True, False], ids=["a session", "no session"])
def test_commands_that_only_ask_load_nothing_heavy(arguments: tuple[str, ...], there: bool, tmp_path: Path) -> None:
    if there:
        running(tmp_path / "sessions/first", 20)
    assert not _loaded("import sys; from cake_tui.cli import main; main(sys.argv[1:])", tmp_path, *arguments) & set(
        HEAVY
    )


# --- layers -------------------------------------------------------------------------------------------


def test_the_import_layers_are_kept() -> None:
    command = shutil.which("lint-imports", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if command is None:
        pytest.skip("no lint-imports here: pip install import-linter")
    done = subprocess.run([command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
