"""What every law keeps, whichever the registry finds: it accepts what structures begin with, and says what it is."""

from __future__ import annotations

from functools import cache

import pytest

from cake_tui import ir, kernels, registry
from cake_tui.errors import UserError
from cake_tui.ir.laws import PLACE, Law, Subject
from cake_tui.ir.program import Program
from cake_tui.model.device import Device, Target
from tests.menu.sample import CPU, GPU

DEVICES: dict[Target, Device] = {"c": CPU, "cuda": GPU}
LAWS = registry.names(PLACE)


@cache
def _programs() -> tuple[tuple[str, Program, Device], ...]:
    """Every structure's first setting of every shipped kernel, in both builds."""
    found = []
    for kernel in kernels.names():
        for target, device in DEVICES.items():
            try:
                problem = kernels.load(kernel, target=target)
            except UserError:
                continue  # it is not for this target
            for structure in ir.structures(problem, target) if problem.template is None else ():
                schedule = ir.default_schedule(problem, structure, target, device)
                for runtime in (False, True):
                    program = ir.build(problem, schedule, target, device, runtime_sizes=runtime)
                    assert isinstance(program, Program)
                    found.append((f"{kernel} {schedule.text} runtime={runtime}", program, device))
    return tuple(found)


def test_there_is_something_to_judge() -> None:
    assert len(LAWS) >= 20
    assert len(_programs()) >= 8


@pytest.mark.parametrize("name", LAWS)
def test_a_law_says_what_it_demands(name: str) -> None:
    law: Law = registry.load(PLACE, name)
    assert len(registry.docstring(PLACE, name)) >= 30
    assert law.name
    assert law.name == law.name.lower()
    assert law.version >= 1
    assert law.stage in (0, 1)
    assert law.origin == "built-in"


def test_no_two_laws_have_one_name() -> None:
    names = [registry.load(PLACE, name).name for name in LAWS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", LAWS)
def test_a_law_accepts_what_every_structure_begins_with(name: str) -> None:
    law: Law = registry.load(PLACE, name)
    for words, program, device in _programs():
        assert list(law.check(Subject(program, device, "any"))) == [], words
