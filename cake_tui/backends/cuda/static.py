"""What a build tells without running: ptxas' report, the instructions by class, and the size of the code."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import msgspec

from cake_tui.backends._elf import section_bytes
from cake_tui.model.facts import StaticFacts

WORD_BYTES = 4  # a spill moves one register
# Some versions of ptxas begin a line with "ptxas info", others with its name and blanks: only the words count.
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SMEM = re.compile(r"(\d+) bytes smem")
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-fA-F]+\*/\s+(?:@!?U?P[0-9T]\s+)?(?P<name>[A-Z][A-Z0-9_]*)(?P<rest>[.\w]*)")
# Classes that somebody asks about; loads and stores keep their width.
_MEMORY = ("LDG", "STG", "LDS", "STS", "LDL", "STL", "LDGSTS")
_PLAIN = (
    "FFMA", "FADD", "FMUL", "FFMA2", "HMMA", "HGMMA", "IMMA", "DMMA", "DFMA", "BAR", "MUFU", "BRA", "RED", "ATOMG",
    "ATOMS", "UTMALDG", "UTMASTG", "SYNCS",
)  # fmt: skip
_WIDTHS = ("128", "64")


def from_ptxas(log: str) -> StaticFacts:
    """Return ptxas' report (``-v``): the most of any kernel, spills summed over all; None where it is silent."""
    stack, stores, loads = _columns(_SPILLS.findall(log))
    registers, barriers, smem = (_numbers(pattern, log) for pattern in (_REGISTERS, _BARRIERS, _SMEM))
    reported = bool(registers)
    return StaticFacts(
        registers=max(registers, default=None),
        stack_bytes=max(stack, default=None),
        spill_stores=sum(stores) // WORD_BYTES if stores else None,
        spill_loads=sum(loads) // WORD_BYTES if loads else None,
        barriers=max(barriers, default=0 if reported else None),
        smem_static_bytes=max(smem, default=0 if reported else None),
    )


def with_code(facts: StaticFacts, cubin: Path, sass: str) -> StaticFacts:
    """Add the size of the code in a cubin and the instruction mix of its disassembly (empty: none)."""
    mix = sass_mix(sass)
    counted = dict(mix)
    return msgspec.structs.replace(
        facts, code_bytes=section_bytes(cubin, b".text."), sass=mix,
        fma_instructions=counted.get("FFMA", 0) + counted.get("FFMA2", 0) if mix else facts.fma_instructions,
    )  # fmt: skip


def sass_mix(text: str) -> tuple[tuple[str, int], ...]:
    """Count a disassembly's instructions by class, most frequent first: FFMA, LDG.128, LDS, STL, BAR, ...

    Loads and stores of 4 bytes or less have no width behind their name.
    """
    found: Counter[str] = Counter()
    for line in text.splitlines():
        match = _INSTRUCTION.match(line)
        if match is None:
            continue
        name, parts = match["name"], match["rest"].split(".")
        if name in _MEMORY:
            width = next((width for width in _WIDTHS if width in parts), None)
            found[f"{name}.{width}" if width else name] += 1
        elif name in _PLAIN:
            found[name] += 1
    return tuple(sorted(found.items(), key=lambda entry: (-entry[1], entry[0])))


def _numbers(pattern: re.Pattern[str], log: str) -> list[int]:
    return [int(number) for number in pattern.findall(log)]


def _columns(rows: list[tuple[str, str, str]]) -> tuple[list[int], list[int], list[int]]:
    numbers = [tuple(int(number) for number in row) for row in rows]
    return [row[0] for row in numbers], [row[1] for row in numbers], [row[2] for row in numbers]
