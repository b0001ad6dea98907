"""The eight moves on the CPU: what each does to a schedule and its source, and the field that forbids it elsewhere."""

from __future__ import annotations

import functools

import pytest

from cake_tui import ir, kernels, menu, registry
from cake_tui.errors import Ended
from cake_tui.menu import Menu
from cake_tui.model.outcome import Rejected
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Schedule
from tests.loop.driving import ROOT

# move, what it starts from, and the constants or structure that it must have changed in the source
WORKS = [
    ("apply_tiling(128)", Schedule.of("naive"), "tiled"),
    ("apply_vectorize(1)", "packed", "vector"),
    ("apply_register_block(8, 1)", "packed", "thread_m"),
    ("apply_unroll(4)", "packed", "unroll"),
    ("change_block_config(8, 2)", "packed", "threads_x"),
    ("apply_shared_memory_load()", "packed", "shared"),
    ("apply_shared_memory_load()", Schedule.of("naive"), "tiled"),
    ("avoid_bank_conflict(16)", "packed", "pad"),
    ("split_k(4)", "packed", "split_k"),
]
REFUSED = [
    ("apply_vectorize(4)", "naive", "vector"),
    ("apply_register_block(4, 2)", "naive", "thread_m"),
    ("apply_unroll(2)", "naive", "unroll"),
    ("change_block_config(2, 2)", "naive", "threads_x"),
    ("apply_shared_memory_load()", "split_k", "shared"),
    ("avoid_bank_conflict(8)", "naive", "pad"),
]


@functools.cache
def space() -> tuple[Problem, Menu]:
    problem = kernels.load("matmul_bias_relu", target="c")
    device = registry.load("backends", "simulated").devices()[0]
    return problem, menu.load(ROOT / "actions.toml", problem, device)


def source_of(schedule: Schedule) -> str:
    problem, actions = space()
    program = ir.build(problem, schedule, "c", actions.device, runtime_sizes=False)
    return ir.lower(program, "c", actions.device.arch, problem.shapes).source


@pytest.mark.parametrize(("text", "start", "changed"), WORKS, ids=[f"{work[0]}-{work[2]}" for work in WORKS])
def test_the_move_changes_the_source_and_nothing_but_what_it_names(
    text: str, start: Schedule | str, changed: str
) -> None:
    _, actions = space()
    base = start if isinstance(start, Schedule) else actions.default(start)
    after, level = actions.apply(base, (actions.parse(text),))
    assert source_of(after) != source_of(base)
    if after.structure != base.structure:
        assert level == "macro"
        assert changed in (after.structure, *dict(after.knobs))
        kept = {name: value for name, value in after.knobs if name in dict(base.knobs)}
        assert {name: base.knob(name) for name in kept} == kept, "knobs that both structures have are kept"
    else:
        assert level == "micro"
        differing = {name for name, value in after.knobs if base.knob(name) != value}
        assert changed in differing
        assert differing <= {changed, "thread_n", "threads_y"}


@pytest.mark.parametrize(("text", "structure", "field"), REFUSED, ids=[work[0] for work in REFUSED])
def test_a_move_without_a_meaning_is_refused_with_the_field(text: str, structure: str, field: str) -> None:
    _, actions = space()
    with pytest.raises(Ended) as caught:
        actions.apply(actions.default(structure), (actions.parse(text),))
    outcome = caught.value.outcome
    assert isinstance(outcome, Rejected)
    assert outcome.diagnostics[0].field == field
    assert structure in outcome.diagnostics[0].text


def test_tiling_is_refused_where_it_would_change_nothing() -> None:
    _, actions = space()
    tiled = actions.default("tiled")
    with pytest.raises(Ended) as caught:
        actions.apply(tiled, (actions.parse(f"apply_tiling({tiled.knob('block_k')})"),))
    assert isinstance(caught.value.outcome, Rejected)
    assert caught.value.outcome.diagnostics[0].field == "block_k"


def test_a_register_block_larger_than_the_registers_is_refused_with_the_numbers() -> None:
    problem, actions = space()
    packed, _ = actions.apply(actions.default("packed"), (actions.parse("apply_register_block(14, 4)"),))
    with pytest.raises(Ended) as caught:
        ir.build(problem, packed, "c", actions.device, runtime_sizes=False)
    outcome = caught.value.outcome
    assert isinstance(outcome, Rejected)
    first = outcome.diagnostics[0]
    assert first.field == "thread_m"
    assert (first.asked, first.available) == (14 * 4 + 4 + 1, actions.device.vector_registers)
