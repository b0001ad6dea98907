"""Programs with awkward numbers, names and lines end as diagnostics or refusals, never as a crash."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

from cake_tui import ir, kernels
from cake_tui.errors import Ended
from cake_tui.ir import cost, laws, text
from cake_tui.ir.expr import ParseError
from cake_tui.ir.origins import text_structure
from cake_tui.model.device import Device
from cake_tui.model.move import Proposal
from cake_tui.model.problem import Problem, Shape
from cake_tui.model.schedule import KnobValue, Schedule
from cake_tui.steps import plan
from tests.ir.devices import CPU, H200
from tests.ir.test_laws_programs import PROGRAMS

NUMBERS = ("0", "-1", "1", "3", "17", "0.5", "1000000", "2147483648", "1" + "0" * 26)
KNOBS: tuple[KnobValue, ...] = (0, -1, 3, 1 << 31, 10**30, True, "x")
NUMBER, NAME = re.compile(r"(?<![\w.])\d+(?![\w.])"), re.compile(r"\b[A-Za-z_]\w*\b")
OPERATOR, OPERATORS = re.compile(r"[-+*/%,]|\.\.|>=|<"), ("+", "-", "*", "/", "%", ",", "..", "<", ">=")
PROPOSAL = Proposal(0, (), "", "start", "start")


def mutated(program: str, rng: random.Random) -> str:
    """Change one number, name, operator or line of a program text."""
    lines = program.split("\n")
    at = rng.randrange(len(lines))
    how = rng.choice(("number", "number", "number", "name", "operator", "line"))
    if how == "line":
        lines[at : at + 1] = rng.choice(([], [lines[at]] * 2, [rng.choice(lines)]))
        return "\n".join(lines)
    pattern = {"number": NUMBER, "name": NAME, "operator": OPERATOR}[how]
    places = [(line, found) for line in range(len(lines)) for found in pattern.finditer(lines[line])]
    line, found = rng.choice(places)
    new = rng.choice({"number": NUMBERS, "name": tuple(NAME.findall(program)), "operator": OPERATORS}[how])
    lines[line] = lines[line][: found.start()] + new + lines[line][found.end() :]
    return "\n".join(lines)


def test_laws_and_cost_model_answer_for_whatever_can_be_read() -> None:
    rng = random.Random(1)
    refused = passed = 0
    for _ in range(600):
        try:
            program = text.parse(mutated(rng.choice(PROGRAMS).read_text(encoding="utf-8"), rng))
        except ParseError:
            continue
        device = CPU if program.target == "c" else H200
        shapes = [Shape(tuple((size.name, size.value or 64) for size in program.sizes))]
        found = laws.verify(program, device)
        cost.estimate(program, device, shapes)
        if found:
            refused += 1
            continue
        passed += 1
        try:
            ir.lower(program, program.target, device.arch, shapes)
        except Ended:
            continue
    assert refused > 100
    assert passed > 50


def structures() -> Iterator[tuple[Problem, Device, str]]:
    for target, device in (("c", CPU), ("cuda", H200)):
        problem = kernels.load("matmul_bias_relu", target=target)
        for structure in ir.structures(problem, target):
            yield problem, device, structure


def test_a_mutated_text_of_a_structure_is_planned_or_refused() -> None:
    rng = random.Random(2)
    planned = refused = 0
    for problem, device, structure in structures():
        first = ir.default_schedule(problem, structure, device.target, device)
        program = ir.text_of(ir.full_build(problem, first, device))
        for _ in range(25):
            content = mutated(program, rng)
            texts = {text_structure(content): content}
            try:
                schedule = ir.default_schedule(problem, text_structure(content), device.target, device, texts=texts)
                draft = plan.draft(PROPOSAL, schedule, None, problem, device, texts)
                plan.lower(draft, problem, device)
                plan.smoke_build(schedule, problem, device, 1 / 8, texts)
                planned += 1
            except Ended:
                refused += 1
    assert planned > 20
    assert refused > 20


@pytest.mark.parametrize("value", KNOBS, ids=repr)
def test_a_knob_far_off_its_values_is_refused_with_its_name(value: KnobValue) -> None:
    for problem, device, structure in structures():
        first = ir.default_schedule(problem, structure, device.target, device)
        for knob in ir.knobs(problem, structure, device.target, device):
            if value in knob.values and type(value) is type(knob.default):
                continue
            schedule = Schedule.of(structure, {**dict(first.knobs), knob.name: value})
            with pytest.raises(Ended) as ended:
                plan.draft(PROPOSAL, schedule, None, problem, device, {})
            assert knob.name in ended.value.outcome.reason
