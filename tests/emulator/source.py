"""Turns the text of a CUDA source into C++ that g++ compiles against the emulator's headers; lines keep their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable

MARKER = "// --- kernel ---"  # lowering puts it between what kernels need and the kernels
_ALIGN = r"(?:(?:__align__|alignas)\((?P<align>\w+)\)\s*)?"
_DYNAMIC = re.compile(rf"extern\s+__shared__\s+{_ALIGN}(?P<type>[\w ]+?)\s+(?P<name>\w+)\s*\[\s*\]\s*;")
_ARRAYS = re.compile(rf"__shared__\s+{_ALIGN}(?P<type>(?:unsigned |signed |long )*\w+)\s+(?P<arrays>\w[^;=]*);")
_ARRAY = re.compile(r"(?P<name>\w+)\s*(?P<extents>(?:\[[^\]]*\]\s*)*)")
_DEFINED = re.compile(r"\n\n+")


def rewrite(source: str, entries: Iterable[str]) -> str:
    """Return C++ for a CUDA source: hardware instructions and shared arrays are the emulator's, all else stays."""
    before, marker, kernels = source.rpartition(MARKER)
    text = "".join((_without_instructions(before), marker, kernels))
    text = _ARRAYS.sub(_arrays, _DYNAMIC.sub(_dynamic, text))
    named = "".join(f'  if (!__builtin_strcmp(name, "{entry}")) return [](void **p) {{ call({entry}, p); }};\n' for entry in entries)
    table = f"namespace emu {{\nvoid (*entry_named(const char *name))(void **) {{\n{named}  return nullptr;\n}}\n}}\n"
    return f"{text}\n{table}"


def _without_instructions(prelude: str) -> str:
    """Blank the definitions that contain instructions: the emulator's headers have others of the same names."""
    kept = []
    at = 0
    for gap in (*_DEFINED.finditer(prelude), None):
        end = gap.start() if gap else len(prelude)
        chunk = prelude[at:end]
        kept.append("\n" * chunk.count("\n") if re.search(r"\basm\b", chunk) else chunk)
        if gap:
            kept.append(gap.group())
            at = gap.end()
    return "".join(kept)


def _dynamic(found: re.Match[str]) -> str:
    return f"EMU_DYNAMIC({found['type']}, {found['name']}, {found['align'] or 16});"


def _arrays(found: re.Match[str]) -> str:
    made = []
    for array in _ARRAY.finditer(found["arrays"]):
        align = f"{found['align'] or 0}"
        made.append(f"EMU_SHARED({found['type']}, {array['name']}, {array['extents'].strip()}, {align});")
    return " ".join(made)
