"""Turns a CUDA source into C++ that g++ compiles against the emulator's headers; lines keep their numbers."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from pathlib import Path

from cake_tui.ir.lower.cuda import prelude
from cake_tui.ir.lower.cuda.source import KERNEL

PRELUDE = Path(__file__).parent / "prelude"
_COMMENT = re.compile(r"//.*")
_ALIGN = r"(?:(?:__align__|alignas)\((?P<align>\w+)\)\s*)?"
_DYNAMIC = re.compile(rf"extern\s+__shared__\s+{_ALIGN}(?P<type>[\w ]+?)\s+(?P<name>\w+)\s*\[\s*\]\s*;")
# Typed pointers into dynamic shared memory; the reports call places by these names.
_PART = re.compile(r"\*(?P<name>\w+) = reinterpret_cast<[^>]+>\(shared_memory(?: \+ \d+)?\);")
_ARRAYS = re.compile(rf"__shared__\s+{_ALIGN}(?P<type>(?:unsigned |signed |long )*\w+)\s+(?P<arrays>\w[^;=]*);")
_ARRAY = re.compile(r"(?P<name>\w+)\s*(?P<extents>(?:\[[^\]]*\]\s*)*)")


class NotEmulated(Exception):
    """A function of the prelude that holds hardware instructions, and the emulator has none of its signature."""


def with_prelude(kernels: str) -> str:
    """Return a whole source of kernels, as lowering writes it: the functions of the prelude that they call in front."""
    needed = prelude.text_for(kernels)
    return f"{needed}\n{KERNEL}{kernels}" if needed else kernels


def kernels_of(source: str) -> str:
    """Return the kernels of a source, without what stands in front of them."""
    return source.rpartition(KERNEL)[2]


def rewrite(source: str, entries: Iterable[str]) -> str:
    """Return C++ for a CUDA source: hardware instructions and shared arrays are the emulator's, all else stays.

    Raises NotEmulated.
    """
    text = "\n\n".join(map(_emulated, source.split("\n\n")))
    text = _ARRAYS.sub(_arrays, _DYNAMIC.sub(_dynamic, text))
    text = _PART.sub(r'\g<0> emu::name_part("\g<name>", \g<name>, sizeof *\g<name>);', text)
    named = "".join(
        f'  if (!__builtin_strcmp(name, "{entry}")) return [](void **p) {{ emu::call({entry}, p); }};\n'
        for entry in entries
    )
    table = f'extern "C" void (*emu_entry(const char *name))(void **) {{\n{named}  return nullptr;\n}}\n'
    return f"{text}\n{table}"


def has_instructions(block: str) -> bool:
    """Say whether a definition of the prelude holds hardware instructions."""
    return re.search(r"\basm\b", _COMMENT.sub("", block)) is not None


def signature(block: str) -> str:
    """Return what stands before a definition's body (and a type's parents), on one line and without comments."""
    return " ".join(_COMMENT.sub("", block).partition("{")[0].partition(" : ")[0].split())


@functools.cache
def emulated() -> dict[str, str]:
    """Return the emulator's own definitions by signature."""
    blocks = [
        block for path in sorted(PRELUDE.glob("*.cuh")) for block in path.read_text(encoding="utf-8").split("\n\n")
    ]
    return {signature(block): block for block in blocks if "{" in block}


def _emulated(block: str) -> str:
    """Put the emulator's definition in the place of one of the same signature, on as many lines."""
    own = emulated().get(signature(block))
    if own is None:
        if has_instructions(block):
            raise NotEmulated(signature(block))
        return block
    code = " ".join(_COMMENT.sub("", own).split())
    return code + "\n" * block.count("\n")


def _dynamic(found: re.Match[str]) -> str:
    return f"EMU_DYNAMIC({found['type']}, {found['name']}, {found['align'] or 16});"


def _arrays(found: re.Match[str]) -> str:
    arrays = _ARRAY.finditer(found["arrays"])
    align = found["align"] or 0
    return " ".join(f"EMU_SHARED({found['type']}, {one['name']}, {one['extents'].strip()}, {align});" for one in arrays)
