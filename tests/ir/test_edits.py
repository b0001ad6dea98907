"""Edits: pure rewrites that change what they say, keep what both structures have, and name what forbids them."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_tui import ir
from cake_tui.errors import Ended, UserError
from cake_tui.model.diagnostic import Diagnostic
from cake_tui.model.outcome import Rejected
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import KnobValue, Schedule
from tests.ir.contractions import NARROW, WIDE, matmul

PROBLEM = matmul(512, 512, 512)
NAIVE = ir.first_schedule(PROBLEM, "c", WIDE)
TILED = ir.default_schedule(PROBLEM, "tiled", "c", WIDE)
PACKED = ir.default_schedule(PROBLEM, "packed", "c", WIDE)
SPLIT = ir.default_schedule(PROBLEM, "split_k", "c", WIDE)


def _apply(schedule: Schedule, edit: str, problem: Problem = PROBLEM, **arguments: KnobValue) -> Schedule:
    return ir.apply(problem, schedule, edit, arguments, "c", WIDE)


def _refusal(schedule: Schedule, edit: str, problem: Problem = PROBLEM, **arguments: KnobValue) -> Diagnostic:
    with pytest.raises(Ended) as caught:
        _apply(schedule, edit, problem, **arguments)
    assert isinstance(caught.value.outcome, Rejected)
    return caught.value.outcome.diagnostics[0]


def test_the_baseline_is_naive_and_has_no_knobs() -> None:
    assert Schedule("naive") == NAIVE


@pytest.mark.parametrize(
    ("edit", "arguments", "changed"),
    [
        ("set_knob", {"knob": "unroll", "value": 4}, {"unroll": 4}),
        ("tiling", {"tile_size": 512}, {"block_k": 512}),
        ("vectorize", {"vec_width": 4}, {"vector": 4}),
        ("register_block", {"m": 8, "n": 3}, {"thread_m": 8, "thread_n": 3}),
        ("unroll", {"factor": 2}, {"unroll": 2}),
        ("block_config", {"x": 8, "y": 2}, {"threads_x": 8, "threads_y": 2}),
        ("shared_memory", {}, {"shared": not PACKED.knob("shared")}),
        ("pad", {"pad": 16}, {"pad": 16}),
    ],
)
def test_an_edit_sets_its_knobs_and_nothing_else(
    edit: str, arguments: dict[str, KnobValue], changed: dict[str, KnobValue]
) -> None:
    assert _apply(PACKED, edit, **arguments) == PACKED.with_knobs(changed)


def test_tiling_makes_the_naive_kernel_tiled() -> None:
    assert _apply(NAIVE, "tiling", tile_size=512) == TILED.with_knobs({"block_k": 512})
    assert _apply(NAIVE, "tiling", tile_size=int(TILED.knob("block_k") or 0)) == TILED


def test_staging_makes_the_naive_kernel_tiled() -> None:
    assert _apply(NAIVE, "shared_memory") == TILED.with_knobs({"shared": True})


def test_another_structure_keeps_the_knobs_that_both_have() -> None:
    tuned = TILED.with_knobs({"thread_m": 8, "threads_x": 16, "pad": 4, "block_k": 512})
    packed = _apply(tuned, "change_structure", structure="packed", unroll=8)
    assert packed.structure == "packed"
    assert {packed.knob(name) for name in ("thread_m", "threads_x", "pad", "block_k", "unroll")} == {8, 16, 4, 512}
    assert packed.knob("unroll") == 8
    assert _apply(tuned, "split_k", parts=4).knob("thread_m") == 8
    assert _apply(packed, "change_structure", structure="naive") == NAIVE


@pytest.mark.parametrize(
    ("schedule", "edit", "arguments", "field", "nearest"),
    [
        (NAIVE, "vectorize", {"vec_width": 4}, "vector", None),
        (NAIVE, "register_block", {"m": 4, "n": 1}, "thread_m", None),
        (NAIVE, "unroll", {"factor": 2}, "unroll", None),
        (NAIVE, "block_config", {"x": 2, "y": 2}, "threads_x", None),
        (SPLIT, "shared_memory", {}, "shared", None),
        (NAIVE, "pad", {"pad": 4}, "pad", None),
        (NAIVE, "tiling", {"tile_size": 100}, "block_k", "128"),
        (PACKED, "vectorize", {"vec_width": 32}, "vector", "16"),
        (PACKED, "register_block", {"m": 5, "n": 2}, "thread_m", "4"),
        (PACKED, "register_block", {"m": 4, "n": 9}, "thread_n", "4"),
        (PACKED, "pad", {"pad": True}, "pad", "0"),
        (PACKED, "pad", {"pad": "wide"}, "pad", "0"),
        (PACKED, "set_knob", {"knob": "depth", "value": 2}, "depth", None),
        (PACKED, "set_knob", {"knob": "unroll", "value": 1}, "unroll", None),
        (PACKED, "change_structure", {"structure": "packed"}, "structure", None),
        (PACKED, "change_structure", {"structure": "packd"}, "structure", "naive"),
        (PACKED, "change_structure", {"structure": "tiled", "vector": 3}, "vector", "4"),
        (PACKED, "split_k", {"parts": 3}, "split_k", "2"),
        (PACKED, "tiling", {}, "tile_size", None),
        (PACKED, "tiling", {"tile_size": 64, "deep": 1}, "deep", None),
    ],
)
def test_a_refusal_names_what_forbids_it(
    schedule: Schedule, edit: str, arguments: dict[str, KnobValue], field: str, nearest: str | None
) -> None:
    found = _refusal(schedule, edit, **arguments)
    assert (found.field, found.nearest) == (field, nearest)
    assert "\n" not in found.text


def test_a_knob_that_nothing_feels_is_refused() -> None:
    found = _refusal(TILED, "pad", pad=16)
    assert (found.law, found.field) == ("no-meaning", "pad")
    assert found.found == "pad = 16 changes nothing in tiled with shared = False"
    staged = _apply(TILED, "shared_memory")
    assert _apply(staged, "pad", pad=16) == staged.with_knobs({"pad": 16})
    assert _apply(PACKED.with_knobs({"shared": False}), "pad", pad=16).knob("pad") == 16


def test_a_device_decides_what_is_legal() -> None:
    with pytest.raises(Ended) as caught:
        ir.apply(PROBLEM, PACKED.with_knobs({"vector": 4}), "vectorize", {"vec_width": 16}, "c", NARROW)
    assert isinstance(caught.value.outcome, Rejected)
    assert caught.value.outcome.diagnostics[0].nearest == "4"


def test_ordered_sums_forbid_split_k() -> None:
    assert _refusal(PACKED, "split_k", matmul(8, 8, 8, accumulation="ordered"), parts=2).field == "accumulation"


def test_an_unknown_edit_is_the_users_mistake() -> None:
    with pytest.raises(UserError, match="tiling"):
        _apply(PACKED, "tilling", tile_size=64)


_VALUES = st.one_of(st.integers(-4, 2000), st.booleans(), st.sampled_from(["", "packed", "tiled", "ü" * 50]))


@settings(deadline=None)
@given(
    st.sampled_from(ir.edit_names()),
    st.sampled_from([NAIVE, TILED, PACKED]),
    st.data(),
)
def test_an_edit_never_changes_what_it_is_given(edit: str, schedule: Schedule, data: st.DataObject) -> None:
    before = copy.deepcopy(schedule)
    arguments = {name: data.draw(_VALUES) for name in ir.edit_parameters(edit)}
    refused = False
    after = schedule
    try:
        after = ir.apply(PROBLEM, schedule, edit, arguments, "c", WIDE)
    except Ended:
        refused = True
    assert schedule == before
    assert refused == (after == schedule)
