"""Where kernels are: folders under ``kernels/`` of the working folder, then of the package."""

from __future__ import annotations

import re
from pathlib import Path

from cake_tui import registry
from cake_tui.errors import UserError, did_you_mean
from cake_tui.toml import shown

NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")
NAME_WORDS = "lower-case letters, digits and _, beginning with a letter, at most 60"
_FILE = "kernel.toml"


def places() -> tuple[Path, ...]:
    """Return the folders that hold kernels, the first one winning: the user's, then the packaged ones."""
    return (Path("kernels"), registry.packaged("kernels"))


def names() -> tuple[str, ...]:
    """List every kernel that can be found, sorted."""
    found = set()
    for place in places():
        if place.is_dir():
            found |= {path.parent.name for path in place.glob(f"*/{_FILE}") if NAME.fullmatch(path.parent.name)}
    return tuple(sorted(found))


def find(name: str) -> Path:
    """Return a kernel's folder; raises UserError naming the nearest kernel there is."""
    check_name(name)
    for place in places():
        folder = place / name
        if folder.is_dir():
            if not (folder / _FILE).exists():
                raise UserError(f"{folder}: no {_FILE} in this folder; see: cake-tui new --help")
            return folder
    known = names()
    raise UserError(f'no kernel "{name}"{did_you_mean(name, known)}; known: {", ".join(known) or "none"}')


def check_name(name: str) -> None:
    """Raise UserError where `name` cannot be a kernel's; such a name never reaches a path."""
    if not NAME.fullmatch(name):
        near = did_you_mean(name[:80].lower(), names())
        raise UserError(f"kernel name: found {shown(name[:80])}, allowed: {NAME_WORDS}{near}")
