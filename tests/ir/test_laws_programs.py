"""The programs of tests/programs: each parses, prints back byte for byte, and no law refuses it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_tui.ir.laws import verify
from cake_tui.ir.text import parse, render
from tests.ir.devices import CPU, H200

PROGRAMS = sorted((Path(__file__).parents[1] / "programs").glob("*.cake"))


def test_there_are_at_least_twenty_programs_on_both_targets() -> None:
    targets = [parse(path.read_text(encoding="utf-8")).target for path in PROGRAMS]
    assert len(targets) >= 20
    assert set(targets) == {"c", "cuda"}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_prints_back_byte_for_byte(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert render(parse(text)) == text


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_legal_program_passes_every_law(path: Path) -> None:
    program = parse(path.read_text(encoding="utf-8"))
    device = CPU if program.target == "c" else H200
    assert [diagnostic.text for diagnostic in verify(program, device)] == []
    assert verify(program) == ()
