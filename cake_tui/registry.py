"""Finds plug-ins by place and name: a file or folder with ``PLUGIN`` as its last word. Listing imports nothing."""

from __future__ import annotations

import functools
import importlib
import os
import sys
from pathlib import Path
from typing import Any

from cake_tui.errors import UserError, did_you_mean, quoted

PACKAGE = Path(__file__).parent


def packaged(name: str) -> Path:
    """Return a file or folder that comes with the package: ``actions.toml``, ``kernels``."""
    installed = PACKAGE / "_data" / name
    return installed if installed.exists() else PACKAGE.parent / name  # a source tree, or an editable installation


def names(place: str) -> tuple[str, ...]:
    """List the plug-ins in a folder of the package, ``agents`` or ``ir/build/contraction``, sorted.

    A plug-in is ``<name>.py`` or ``<name>/__init__.py`` whose name has no leading underscore and whose text
    has a line that begins with ``PLUGIN``. Nothing is imported.
    """
    # Asked several times a move: a folder is read again only when something in it was added or removed.
    try:
        changed_ns = os.stat(f"{PACKAGE}/{place}").st_mtime_ns  # noqa: PTH116 - a path object costs more than the call
        return _names(place, changed_ns)
    except (FileNotFoundError, NotADirectoryError):
        return ()


@functools.lru_cache(maxsize=64)
def _names(place: str, changed_ns: int) -> tuple[str, ...]:
    found = []
    for path in sorted((PACKAGE / place).iterdir()):
        file = path / "__init__.py" if path.is_dir() else path
        if path.stem.startswith("_") or file.suffix != ".py" or not file.is_file():
            continue
        if "\nPLUGIN" in file.read_text(encoding="utf-8"):
            found.append(path.stem)
    return tuple(found)


def load(place: str, name: str) -> Any:
    """Import one plug-in and return its ``PLUGIN``; raises UserError for a name that is not there."""
    full = f"cake_tui.{place.replace('/', '.')}.{name}"
    # Structures and edits are asked for many times a candidate: what was imported is there.
    plugin = getattr(sys.modules.get(full), "PLUGIN", None) if name.isidentifier() else None
    if plugin is not None:
        return plugin
    if name not in names(place):
        known = names(place)
        kind = place.split("/")[0].rstrip("s")
        raise UserError(f"no {kind} {quoted(name)}{did_you_mean(name, known)}; known: {', '.join(known)}")
    return importlib.import_module(full).PLUGIN


def docstring(place: str, name: str) -> str:
    """Return the first line of a plug-in's own words (its module docstring) without importing it."""
    import ast

    path = PACKAGE / place / f"{name}.py"
    file = path if path.is_file() else PACKAGE / place / name / "__init__.py"
    return (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").splitlines()[0]
