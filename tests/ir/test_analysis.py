"""The analyses under the laws: bounds by elimination, boxes, floors, and which barriers start open."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_tui.ir.analysis.affine import Affine, Scope
from cake_tui.ir.analysis.barriers import starts_open
from cake_tui.ir.analysis.boxes import uncovered
from cake_tui.ir.analysis.forms import Unbounded, floor_of, form_of
from cake_tui.ir.analysis.intervals import span_of
from cake_tui.ir.expr import parse as parse_expr
from cake_tui.ir.text import parse

PROGRAMS = Path(__file__).parents[1] / "programs"


def tiles(step: int) -> tuple[Scope, Affine, Affine]:
    """A run-time size in tiles of `step`, with as many blocks as ceil gives: scope, size, an element's coordinate."""
    scope = Scope()
    size = scope.declare("M", Affine.number(1), Affine.number(1 << 20))
    blocks = form_of(parse_expr(f"ceil(M/{step})"), {"M": size}, scope)
    block = scope.declare("m", Affine.number(0), blocks - 1)
    element = scope.declare("i", Affine.number(0), Affine.number(step - 1))
    return scope, size, block.times(step) + element


def test_a_tile_past_the_end_needs_its_guard_for_every_size() -> None:
    scope, size, coordinate = tiles(8)
    beyond = coordinate - size + 1
    assert not scope.at_most_zero(beyond)
    assert scope.know(coordinate - size + 1).at_most_zero(beyond)
    assert not scope.know(coordinate - size).at_most_zero(beyond)  # one element too wide
    assert scope.at_most_zero(-coordinate)


def test_a_size_that_is_a_multiple_needs_no_guard() -> None:
    scope = Scope()
    size = scope.declare("M/8", Affine.number(1), Affine.number(1 << 20)).times(8)
    blocks = form_of(parse_expr("M/8"), {"M": size}, scope)
    block = scope.declare("m", Affine.number(0), blocks - 1)
    element = scope.declare("i", Affine.number(0), Affine.number(7))
    assert scope.at_most_zero(block.times(8) + element - size + 1)


def test_floors_and_remainders_are_bounded_and_whole_parts_leave_them() -> None:
    scope = Scope()
    t = scope.declare("t", Affine.number(0), Affine.number(255))
    names = {"t": t}
    row, column = (form_of(parse_expr(text), names, scope) for text in ("floor(t/16)", "t % 16"))
    assert (scope.least(row), scope.greatest(row)) == (0, 15)
    assert (scope.least(column), scope.greatest(column)) == (0, 15)
    assert floor_of(t.times(2) + 3, scope) == t.times(2) + 3
    with pytest.raises(Unbounded):
        form_of(parse_expr("t*t"), names, scope)


def test_spans_of_expressions_agree_with_trying_all_values() -> None:
    for text in ("a*3 - b", "floor((a + 5)/4) + b % 3", "min(a, b) + max(a, 2)", "ceil(a/3)*3", "-(a - b)"):
        expr = parse_expr(text)
        low, high = span_of(expr, {"a": (0, 9), "b": (1, 4)})
        values = [span_of(expr, {"a": (a, a), "b": (b, b)})[0] for a in range(10) for b in range(1, 5)]
        assert low <= min(values)
        assert high >= max(values)


def test_what_a_union_of_boxes_leaves_is_found() -> None:
    whole = ((0, 9), (0, 9))
    assert uncovered(whole, [((0, 4), (0, 9)), ((5, 9), (0, 9))]) is None
    assert uncovered(whole, [((0, 9), (0, 4)), ((0, 9), (6, 9))]) == ((0, 9), (5, 5))
    assert uncovered(((3, 2), (0, 9)), []) is None


def test_barriers_that_say_free_start_open_and_those_that_say_full_do_not() -> None:
    ring = parse((PROGRAMS / "tma_ring.cake").read_text(encoding="utf-8")).launches[0]
    assert [starts_open(ring, name) for name in ("free", "full_a", "full_b")] == [True, False, False]
    staged = parse((PROGRAMS / "kmeans_roles.cake").read_text(encoding="utf-8")).launches[0]
    assert [starts_open(staged, name) for name in ("free", "full", "ready")] == [True, False, False]
    chain = parse((PROGRAMS / "tma_store_epilogue.cake").read_text(encoding="utf-8")).launches[0]
    assert [starts_open(chain, name) for name in ("free", "done", "missing")] == [True, False, False]
