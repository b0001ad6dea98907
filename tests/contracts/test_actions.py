"""What every action of the packaged menu keeps: it parses, it changes a source or is refused with the field."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from cake_tui import ir, kernels, menu
from cake_tui.errors import Ended, UserError
from cake_tui.ir.opaque import Opaque
from cake_tui.menu import Action, Menu
from cake_tui.model.device import Device, Target
from cake_tui.model.move import Move
from cake_tui.model.outcome import Rejected
from cake_tui.model.schedule import Schedule
from tests.menu.sample import CPU, GPU

SHIPPED = Path(__file__).parents[2] / "actions.toml"
DEVICES: dict[Target, Device] = {"c": CPU, "cuda": GPU}


@cache
def _menu(target: Target, kernel: str = "matmul_bias_relu") -> Menu:
    return menu.load(SHIPPED, kernels.load(kernel, target=target), DEVICES[target])


def _actions(target: Target) -> list[Action]:
    return [action for action in _menu(target).actions if action.usable and not action.reverts]


@cache
def _source(schedule: Schedule) -> str | None:
    """The source of a schedule on the CPU, None where it cannot be built."""
    problem = _menu("c").problem
    try:
        program = ir.build(problem, schedule, "c", CPU, runtime_sizes=False)
        return None if isinstance(program, Opaque) else ir.lower(program, "c", CPU.arch, problem.shapes).sha256
    except Ended:
        return None


def _refusal(ended: Ended) -> None:
    assert isinstance(ended.outcome, Rejected)
    assert ended.outcome.reason
    assert ended.outcome.diagnostics
    for found in ended.outcome.diagnostics:
        assert found.law
        assert found.field
        assert found.needed


def _legal(found: Menu, start: Schedule, move: Move) -> bool:
    """Whether a move may be made from here, or nothing but that it is made already speaks against it."""
    try:
        found.apply(start, (move,))
    except Ended as ended:
        return isinstance(ended.outcome, Rejected) and ended.outcome.diagnostics[0].law == "no-change"
    return True


@pytest.mark.parametrize("target", ["c", "cuda"])
def test_every_move_is_typed_as_it_is_shown(target: Target) -> None:
    found = _menu(target)
    moves = [move for action in _actions(target) for move in action.moves()]
    assert len(moves) > 20
    assert [found.parse(move.text) for move in moves] == moves


@pytest.mark.parametrize("target", ["c", "cuda"])
def test_an_action_says_what_it_does_and_where_it_has_no_meaning(target: Target) -> None:
    found = _menu(target)
    assert len({action.name for action in found.actions}) == len(found.actions)
    for action in found.actions:
        assert action.summary
        assert len(action.summary) <= 120
        assert action.usable or action.refused or not action.enabled
        for parameter in action.parameters:
            assert len(set(parameter.values)) == len(parameter.values)


@pytest.mark.parametrize("action", _actions("c"), ids=lambda action: action.name)
def test_an_action_changes_a_source_or_is_refused_with_the_field(action: Action) -> None:
    found = _menu("c")
    changed = 0
    for structure in found.structures:
        start = found.default(structure)
        for move in action.moves():
            try:
                schedule, level = found.apply(start, (move,))
            except Ended as ended:
                _refusal(ended)
                continue
            assert schedule != start
            assert level == ("macro" if schedule.structure != structure else "micro")
            if not changed:
                source = _source(schedule)
                changed += source is not None and source != _source(start)
    assert changed, f"{action.name} changes no source from any structure's first setting"


@pytest.mark.parametrize("action", _actions("c"), ids=lambda action: action.name)
def test_every_value_of_an_action_is_legal_for_some_structure(action: Action) -> None:
    found = _menu("c")
    starts = [found.default(structure) for structure in found.structures]
    assert not [move.text for move in action.moves() if not any(_legal(found, start, move) for start in starts)]


@pytest.mark.parametrize("kernel", kernels.names())
@pytest.mark.parametrize("target", ["c", "cuda"])
def test_every_kernel_has_moves_from_where_it_starts(kernel: str, target: Target) -> None:
    try:
        found = _menu(target, kernel)
    except UserError as error:
        pytest.skip(str(error))
    if not ir.structures(found.problem, target):
        pytest.skip(f"there is no structure of {found.problem.family} for {target}")
    led = set()
    for move in found.moves(found.first):
        try:
            led.add(found.apply(found.first, (move,))[0])
        except Ended as ended:
            _refusal(ended)
    assert led
