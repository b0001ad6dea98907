"""Small functions that lowered CUDA C++ calls by name, one file a feature; a source holds those that it uses.

A file is made of blocks with an empty line between them, each one definition with its comment. Hardware instructions
stand only here; an emulator supplies functions of the same names.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).parent
_DEFINED = re.compile(r"^(?:struct .*?(\w+) \{|using (\w+)|(?!template|struct)[\w ]+?[ *&](\w+)\()", re.MULTILINE)
_KINDS = frozenset(("double", "f16", "bf16"))  # overloads for these are left out where no element is one


class Block(NamedTuple):
    """One definition: its name, its text and the words in it."""

    name: str
    text: str
    words: frozenset[str]


@lru_cache(maxsize=1)
def blocks() -> tuple[Block, ...]:
    """Return every definition, a file after the other."""
    found = []
    for path in sorted(_FOLDER.glob("*.cuh")):
        for text in path.read_text(encoding="utf-8").split("\n\n"):
            code = re.sub(r"//.*", "", text)
            defined = _DEFINED.search(code)
            if defined is not None:
                found.append(Block(next(filter(None, defined.groups())), text.strip("\n"), words(code)))
    return tuple(found)


def words(text: str) -> frozenset[str]:
    """Return the identifiers in a text."""
    return frozenset(re.findall(r"[A-Za-z_]\w*", text))


def names() -> frozenset[str]:
    """Return every name that the prelude defines: what programs may not call theirs."""
    return frozenset(block.name for block in blocks())


def text_for(source: str) -> str:
    """Return the definitions that a source names and those that these name, each behind what it needs."""
    ordered: dict[Block, None] = {}
    used = words(re.sub(r"//.*", "", source))
    kinds = _KINDS - used

    def add(asked: frozenset[str], above: frozenset[str]) -> None:
        for block in blocks():
            if block.name in asked - above and block not in ordered and not block.words & kinds - {block.name}:
                add(block.words - {block.name}, above | {block.name})
                ordered[block] = None

    add(used, frozenset())
    return "\n\n".join(block.text for block in ordered) + "\n" if ordered else ""
