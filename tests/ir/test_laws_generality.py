"""Laws on what nobody wrote by hand: every builder's programs pass, and garbled programs never raise."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from cake_tui import ir
from cake_tui.errors import Ended
from cake_tui.ir.cost import estimate
from cake_tui.ir.expr import ParseError
from cake_tui.ir.laws import verify
from cake_tui.ir.text import parse
from cake_tui.model.problem import Shape
from cake_tui.model.schedule import Schedule
from tests.ir.contractions import matmul
from tests.ir.devices import CPU, H200

PROGRAMS = [
    path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parents[1] / "programs").glob("*.cake"))
]
NUMBERS = (0, 1, 2, 3, 5, 7, 8, 16, 33, 64, 1000, 10**6, 10**9)


@pytest.mark.parametrize("sizes", [(512, 512, 512), (17, 33, 65), (1, 1, 1)], ids=str)
@pytest.mark.parametrize("runtime", [False, True], ids=["constant", "runtime"])
def test_what_builders_make_passes_every_law(sizes: tuple[int, int, int], runtime: bool) -> None:
    rng = random.Random(7)
    problem = matmul(*sizes)
    seen = 0
    for structure in ir.structures(problem, "c"):
        knobs = ir.knobs(problem, structure, "c", CPU)
        for _ in range(8):
            schedule = Schedule.of(structure, {knob.name: rng.choice(knob.values) for knob in knobs})
            try:
                program = ir.build(problem, schedule, "c", CPU, runtime_sizes=runtime)
            except Ended:
                continue
            found = verify(program, CPU)
            assert found == (), (schedule.text, [diagnostic.text for diagnostic in found])
            seen += 1
    assert seen >= 8


def garbled(text: str, rng: random.Random) -> str:
    """Change one to three lines: another number, another name, a line gone, doubled or moved."""
    lines = text.split("\n")
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(1, len(lines) - 1)
        what = rng.choice(("number", "name", "gone", "doubled", "moved"))
        pattern = r"\b\d+\b" if what == "number" else r"\b[A-Za-z_]\w*\b"
        words = list(re.finditer(pattern, lines[at]))
        if what in ("number", "name") and words:
            old = rng.choice(words)
            new = str(rng.choice(NUMBERS)) if what == "number" else rng.choice(words).group()
            lines[at] = lines[at][: old.start()] + new + lines[at][old.end() :]
        elif what == "gone":
            del lines[at]
        elif what == "doubled":
            lines.insert(at, lines[at])
        else:
            lines.insert(rng.randrange(1, len(lines)), lines.pop(at))
        if len(lines) < 4:
            break
    return "\n".join(lines)


def test_garbled_programs_are_judged_and_never_raise() -> None:
    rng = random.Random(20)
    judged = refused = 0
    for _ in range(500):
        try:
            program = parse(garbled(rng.choice(PROGRAMS), rng))
        except ParseError:
            continue
        device = CPU if program.target == "c" else H200
        found = verify(program, device)
        assert all(diagnostic.law and diagnostic.needed for diagnostic in found)
        estimate(program, device, Shape(tuple((size.name, size.value or 100) for size in program.sizes)))
        judged += 1
        refused += bool(found)
    assert judged > 150
    assert refused > judged / 2
