"""Structures of reductions and elementwise maps: right on c against float64 numpy, legal on cuda at every size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import pytest

from cake_tui import ir
from cake_tui.errors import Ended
from cake_tui.ir import laws, text
from cake_tui.ir.program import Program
from cake_tui.model.outcome import Rejected
from cake_tui.model.problem import BufferSpec, Problem, Shape
from cake_tui.model.schedule import KnobValue, Schedule
from tests.ir.contractions import UNIT, WIDE, compiled, run, unaligned
from tests.ir.devices import H200

ROWS = [(1, 1), (3, 5), (17, 64), (33, 65), (2, 1000), (70, 3)]
EDGES = [*ROWS, (1, 300_000_000), (3_000_000, 1), (4097, 4096)]
Combine = Literal["add", "max", "min"]


def rows(r: int, c: int, mapped: str = "x[r, c]", combine: Combine = "add", value: str = "acc") -> Problem:
    """``y[r]`` of a matrix and a factor for each column."""
    buffers = (
        BufferSpec("x", "f32", ("R", "C")), BufferSpec("w", "f32", ("C",)), BufferSpec("y", "f32", ("R",), role="out")
    )  # fmt: skip
    shape = Shape((("R", r), ("C", c)))
    return Problem("rows", "reduction", value, buffers, (shape,), map=mapped, combine=combine)


def elements(m: int, n: int) -> Problem:
    """``y = gelu(x + bias)``."""
    buffers = (
        BufferSpec("x", "f32", ("M", "N")), BufferSpec("bias", "f32", ("N",)),
        BufferSpec("y", "f32", ("M", "N"), role="out"),
    )  # fmt: skip
    return Problem("maps", "elementwise", "gelu_erf(x[m, n] + bias[n])", buffers, (Shape((("M", m), ("N", n))),))


def line(n: int) -> Problem:
    """``y[n] = 2*x[n]``, with one axis."""
    buffers = (BufferSpec("x", "f32", ("N",)), BufferSpec("y", "f32", ("N",), role="out"))
    return Problem("line", "elementwise", "2*x[n]", buffers, (Shape((("N", n),)),))


def _computed(
    problem: Problem, structure: str, knobs: Mapping[str, KnobValue], inputs: Mapping[str, np.ndarray], folder: Path
) -> np.ndarray:
    """Run a structure on c, sizes given at run time, into a poisoned output."""
    schedule = ir.default_schedule(problem, structure, "c", WIDE).with_knobs(knobs)
    lowered = ir.lower(
        ir.build(problem, schedule, "c", WIDE, runtime_sizes=True), "c", WIDE.arch, problem.shapes
    )  # fmt: skip
    out = next(spec for spec in problem.buffers if spec.role == "out")
    poisoned = np.full([problem.shapes[0][size] for size in out.shape], np.nan, np.float32)
    buffers = {name: unaligned(array) for name, array in (*inputs.items(), (out.name, poisoned))}
    run(lowered, compiled(lowered, folder), problem.shapes[0], buffers)
    return buffers[out.name]


SIMD: list[tuple[str, dict[str, KnobValue]]] = [
    ("naive", {}),
    ("simd_rows", {}),
    ("simd_rows", {"vector": 1, "thread_n": 1}),
    ("simd_rows", {"vector": 8, "thread_n": 2, "threads_y": 4}),
]


@pytest.mark.cc
@pytest.mark.parametrize(("structure", "knobs"), SIMD)
@pytest.mark.parametrize("sizes", ROWS)
def test_sums_of_rows_are_right(
    structure: str, knobs: dict[str, KnobValue], sizes: tuple[int, int], tmp_path: Path
) -> None:
    random = np.random.default_rng(1)
    x, w = random.standard_normal(sizes).astype(np.float32), random.standard_normal(sizes[1]).astype(np.float32)
    problem = rows(*sizes, mapped="x[r, c]*w[c]", value="2*acc")
    found = _computed(problem, structure, knobs, {"x": x, "w": w}, tmp_path)
    terms = x.astype(np.float64) * w
    # Term after term every addition rounds once: C of them.
    assert (np.abs(found - 2 * terms.sum(axis=1)) <= (sizes[1] + 4) * UNIT * 2 * np.abs(terms).sum(axis=1)).all()


@pytest.mark.cc
@pytest.mark.parametrize("structure", ["naive", "simd_rows"])
@pytest.mark.parametrize(("combine", "exact"), [("max", np.max), ("min", np.min)])
def test_the_largest_and_smallest_of_rows_are_found(
    structure: str, combine: Combine, exact: object, tmp_path: Path
) -> None:
    x = np.random.default_rng(2).standard_normal((9, 37)).astype(np.float32) - 3  # a zero in a tail would win
    problem = rows(9, 37, combine=combine)
    found = _computed(problem, structure, {}, {"x": x, "w": x[0]}, tmp_path)
    assert (found == exact(x, axis=1)).all()  # type: ignore[operator]


@pytest.mark.cc
@pytest.mark.parametrize("structure", ["naive", "vectorized"])
@pytest.mark.parametrize("sizes", ROWS)
def test_maps_are_right(structure: str, sizes: tuple[int, int], tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    x, bias = random.standard_normal(sizes).astype(np.float32), random.standard_normal(sizes[1]).astype(np.float32)
    found = _computed(elements(*sizes), structure, {}, {"x": x, "bias": bias}, tmp_path)
    z = x.astype(np.float64) + bias
    exact = 0.5 * z * np.vectorize(math.erfc, otypes=[float])(-z / math.sqrt(2))
    assert (np.abs(found - exact) <= 16 * UNIT * (np.abs(x) + np.abs(bias))).all()


@pytest.mark.cc
@pytest.mark.parametrize("structure", ["naive", "vectorized"])
@pytest.mark.parametrize("n", [1, 16, 515])
def test_maps_of_one_axis_are_right(structure: str, n: int, tmp_path: Path) -> None:
    x = np.random.default_rng(4).standard_normal(n).astype(np.float32)
    assert (_computed(line(n), structure, {}, {"x": x}, tmp_path) == 2 * x).all()


ON_CUDA = [(structure, rows) for structure in ir.structures(rows(8, 8), "cuda")] + [
    (structure, elements) for structure in ir.structures(elements(8, 8), "cuda")
]


@pytest.mark.parametrize(("structure", "made"), ON_CUDA)
@pytest.mark.parametrize("sizes", EDGES)
@pytest.mark.parametrize("runtime", [False, True])
def test_laws_take_every_default_at_every_size(
    structure: str, made: object, sizes: tuple[int, int], runtime: bool
) -> None:
    problem: Problem = made(*sizes)  # type: ignore[operator]
    schedule = ir.default_schedule(problem, structure, "cuda", H200)
    program = ir.build(problem, schedule, "cuda", H200, runtime_sizes=runtime)
    assert isinstance(program, Program)
    assert laws.verify(program, H200, accumulation=problem.accumulation) == ()
    assert text.parse(text.render(program)) == program
    assert ir.lower(program, "cuda", H200.arch, problem.shapes).plan(problem.shapes[0]).launches


def test_one_axis_is_enough_on_cuda() -> None:
    problem = line(1001)
    for structure in ir.structures(problem, "cuda"):
        schedule = ir.default_schedule(problem, structure, "cuda", H200)
        program = ir.build(problem, schedule, "cuda", H200, runtime_sizes=False)
        assert isinstance(program, Program)
        assert laws.verify(program, H200) == ()


def test_a_thread_takes_whole_vectors_or_the_knob_is_named() -> None:
    problem = rows(64, 4096)
    schedule = Schedule.of("warp_per_row", {"thread_n": 2, "vector": 4})
    with pytest.raises(Ended) as caught:
        ir.build(problem, schedule, "cuda", H200, runtime_sizes=False)
    assert isinstance(caught.value.outcome, Rejected)
    found = caught.value.outcome.diagnostics[0]
    assert (found.field, found.nearest) == ("thread_n", "4")


def test_rows_that_must_be_added_in_order_are_not_split() -> None:
    problem = msgspec.structs.replace(rows(64, 4096), accumulation="ordered")
    schedule = ir.default_schedule(problem, "split_rows", "cuda", H200)
    with pytest.raises(Ended) as caught:
        ir.build(problem, schedule, "cuda", H200, runtime_sizes=False)
    assert isinstance(caught.value.outcome, Rejected)
    assert caught.value.outcome.diagnostics[0].field == "accumulation"
