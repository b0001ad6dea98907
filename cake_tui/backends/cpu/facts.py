"""Static facts of a build: vector share, fused operations, spills and missed loops, from text that compilers write."""

from __future__ import annotations

import re
from pathlib import Path

from cake_tui.backends._elf import section_bytes
from cake_tui.model.facts import StaticFacts

# Floating-point arithmetic of x86 in AT&T syntax: v?(f)m(add|sub)…, add, sub, mul, div, max, min, sqrt; p or s, s or d.
ARITHMETIC = re.compile(
    r"^\tv?(?P<name>fn?m(?:add|sub)(?:addsub|subadd)?(?:132|213|231)|add|sub|mul|div|max|min|sqrt)(?P<kind>[ps])[sd]\b(?P<rest>.*)"
)
MOVE = re.compile(r"^\tv?mov(?:[au]p[sd]|dq[au]\d*|s[sd])\t(?P<operands>.+)")
STACK = re.compile(r"-?\w*\(%r[sb]p\)")
MISSED = re.compile(
    r"(?::(?P<line>\d+):\d+: missed:\s+not vectorized: (?P<why>.+))|(?P<remark>remark: .*loop not vectorized.*)"
)
WIDTH = {"zmm": 64, "ymm": 32, "xmm": 16}
MOST_LOOPS = 8


def read_facts(binary: Path, log: str, compiler: str) -> StaticFacts:
    """Read what lies beside `binary`; a value whose source is missing is None."""
    assembly = "\n".join(
        path.read_text(encoding="utf-8", errors="replace") for path in sorted(binary.parent.glob("*.s"))
    )
    report = binary.parent / "vector-report.txt"
    text = report.read_text(encoding="utf-8", errors="replace") if report.is_file() else log
    facts = StaticFacts(compiler=compiler, code_bytes=section_bytes(binary, b".text\0"), missed_loops=_missed(text))
    if "%rip" not in assembly and "%rsp" not in assembly and "%rdi" not in assembly:
        return facts  # no assembly, or not of x86
    return _count(assembly, facts)


def _count(assembly: str, facts: StaticFacts) -> StaticFacts:
    """Count arithmetic by register width, fused operations, and vector moves to and from the stack."""
    widths: dict[int, int] = {}
    fused = stores = loads = 0
    for line in assembly.splitlines():
        arithmetic = ARITHMETIC.match(line)
        if arithmetic:
            found = re.findall(r"%([xyz]mm)\d+", arithmetic["rest"])
            width = WIDTH[found[-1]] if found and arithmetic["kind"] == "p" else 4
            widths[width] = widths.get(width, 0) + 1
            fused += arithmetic["name"].startswith("f")
        move = MOVE.match(line)
        if move and STACK.search(move["operands"]):
            if STACK.search(move["operands"].rsplit(",", 1)[-1]):
                stores += 1
            else:
                loads += 1
    total = sum(widths.values())
    widest = max((width for width in widths if width > 4), default=0)
    return StaticFacts(
        compiler=facts.compiler, code_bytes=facts.code_bytes, vector_bytes=widest,
        vector_share=widths.get(widest, 0) / total if total and widest else 0.0 if total else None,
        fma_instructions=fused, spill_stores=stores, spill_loads=loads, missed_loops=facts.missed_loops,
    )  # fmt: skip


def _missed(report: str) -> tuple[str, ...]:
    """Return the compiler's own words for the first loops that it did not vectorise, without repeats."""
    found: dict[str, None] = {}
    for match in MISSED.finditer(report):
        found[f"line {match['line']}: {match['why'].strip()}" if match["why"] else match["remark"].strip()] = None
        if len(found) == MOST_LOOPS:
            break
    return tuple(found)
