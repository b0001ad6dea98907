"""Makes a kernel's folder in one step: a copy of another kernel, or one around a user's own kernel file."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from cake_tui.errors import ENVIRONMENT, UserError
from cake_tui.kernels.folders import check_name, find
from cake_tui.kernels.source import load, read_folder
from cake_tui.kernels.template import TARGET_OF
from cake_tui.model.device import Target
from cake_tui.toml import read_text, shown

_ENTRY = {
    "c": re.compile(r"\bvoid\s+(\w+)\s*\(\s*(?:const\s+)?int\s+\w*\s*\[\s*3\s*\]"),
    "cuda": re.compile(
        r"__global__\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?void\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)"
    ),
}
_FORM = {"c": "void NAME(const int task[3], const float *a, ...)", "cuda": "__global__ void NAME(const float *a, ...)"}
_MACRO = re.compile(r"#\s*ifndef\s+(\w+)\s*\n\s*#\s*define\s+\1\s+(\d{1,9})\b")
_EXAMPLE = "cake-tui new NAME --from matmul_bias_relu_template"
_LARGEST_BYTES = 20_000_000
_SKIPPED = ("__pycache__",)


def copy_of(name: str, kernel: str) -> Path:
    """Make ``kernels/<name>`` from another kernel's folder; raises UserError and leaves nothing behind."""
    check_name(name)
    return _make(name, find(kernel), _copy_folder)


def around(name: str, file: Path, reference: str) -> Path:
    """Make ``kernels/<name>`` around a kernel.c or kernel.cu; raises UserError and leaves nothing behind.

    Macros with a default (``#ifndef X``, ``#define X 4``) become knobs with that one value. `reference` is a
    kernel that computes the same, whose buffers and shapes it takes over.
    """
    check_name(name)
    target = TARGET_OF.get(file.suffix)
    if target is None:
        raise UserError(f"--template: found {shown(str(file))}, allowed: a .c or .cu file")
    source = read_text(file)
    entry = _ENTRY[target].search(source)
    if entry is None:
        raise UserError(f"{file}: no kernel in it; write one as {_FORM[target]}, as {_EXAMPLE} shows")
    taken = _sizes_of(reference, target)
    knobs = {macro: value for macro, value in _MACRO.findall(source) if macro not in taken}
    text = kernel_toml(f"kernel{file.suffix}", entry[1], knobs, reference)

    def fill(file: Path, folder: Path) -> None:
        (folder / f"kernel{file.suffix}").write_text(source, encoding="utf-8", newline="")
        (folder / "kernel.toml").write_text(text, encoding="utf-8")

    return _make(name, file, fill)


def kernel_toml(file: str, entry: str, knobs: dict[str, str], reference: str) -> str:
    """Write the kernel.toml of a user's own kernel file."""
    lines = [f'title = "{file} by hand"', f'template = "{file}"', f'entry = "{entry}"']
    lines += [f'reference = "{reference}"   # what it must compute, over which buffers and shapes', ""]
    lines += ["# Each knob becomes a macro; add the values to be tried. The first one is where tuning starts."]
    lines += ["[knobs]", *(f"{name} = [{value}]" for name, value in knobs.items()), ""]
    lines += ["[launch]", f"grid = [{', '.join(_grid(knobs))}]   # x first; how many tasks (blocks) an axis"]
    lines += [] if file.endswith(".c") else ["block = [256]", "smem_bytes = 0"]
    return "\n".join(lines) + "\n"


def _sizes_of(reference: str, target: Target) -> tuple[str, ...]:
    """Return the names of the sizes that the file gets as macros, which are no knobs."""
    return load(reference, target=target).size_names


def _grid(knobs: dict[str, str]) -> list[str]:
    if {"BM", "BN"} <= knobs.keys():
        return ['"ceil(N / BN)"', '"ceil(M / BM)"']
    return ["1"]


def _make(name: str, source: Path, fill: Callable[[Path, Path], None]) -> Path:
    """Fill a folder under a temporary name, read it, and only then give it its own name."""
    folder = Path("kernels") / name
    if folder.exists() or folder.is_symlink():
        raise UserError(f"{folder} is there already; choose another name or remove it")
    made_place = not folder.parent.exists()
    staging = folder.parent / f".{name}.{os.getpid()}.new"
    try:
        staging.mkdir(parents=True)
        fill(source, staging)
        read_folder(staging, name)
        staging.rename(folder)
    except OSError as error:
        raise UserError(f"{folder}: cannot be made: {(error.strerror or str(error)).lower()}", ENVIRONMENT) from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if made_place and not folder.exists() and folder.parent.is_dir() and not any(folder.parent.iterdir()):
            folder.parent.rmdir()
    return folder


def _copy_folder(source: Path, folder: Path) -> None:
    total = 0
    for path in sorted(source.rglob("*")):
        inside = path.relative_to(source)
        if set(inside.parts) & {*_SKIPPED} or not path.is_file():
            continue
        total += path.stat().st_size
        if total > _LARGEST_BYTES:
            raise UserError(f"{source}: more than {_LARGEST_BYTES} bytes; copy it by hand")
        (folder / inside).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / inside)
