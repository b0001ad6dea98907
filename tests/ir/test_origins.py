"""Structures that are no builder: a person's program text, and a user's own kernel file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
import pytest

from cake_tui import ir
from cake_tui.errors import Ended
from cake_tui.ir.opaque import Opaque
from cake_tui.model.diagnostic import Diagnostic
from cake_tui.model.lowered import Lowered
from cake_tui.model.outcome import Rejected
from cake_tui.model.problem import Problem, Template
from cake_tui.model.schedule import Knob, KnobValue, Schedule
from tests.ir.contractions import UNIT, WIDE, compiled, exact, inputs, matmul, run

TEXT = """\
program mine ir 1 target c x86-64-v4
  size M = 512 multiple 2
  size N = 512
  size K = 512
  const rows = 4 of 2 4 8
  const lanes = 8 of 4 8 16
  param a: f32[M, K] align 4
  param b: f32[K, N] align 4
  param bias: f32[N] align 4
  param y: f32[M, N] out align 4
launch main grid r = ceil(M/rows)
  for c in 0..ceil(N/lanes):
    register acc: f32[rows, lanes] spread lanes lanes = 0
    for k in 0..K:
      acc += outer(a[m in r*rows +: rows, k], b[k, n in c*lanes +: lanes]) math fma where m < M and n < N else 0
    y[m in r*rows +: rows, n in c*lanes +: lanes] = relu(acc + bias[n]) vector lanes where m < M and n < N
"""
NAME = ir.text_structure(TEXT)
TEXTS = {NAME: TEXT}

KERNEL = """\
void kernel(const int task[3], const float *a, const float *b, const float *bias, float *y, int M, int N, int K) {
  for (int m = task[0] * ROWS; m < (task[0] + 1) * ROWS && m < M; m++)
    for (int n = 0; n < N; n++) {
      float acc = 0;
      for (int k = 0; k < K; k++) acc += a[m * K + k] * b[k * N + n];
      acc += bias[n];
      y[m * N + n] = acc < 0 ? 0 : acc;
    }
}
"""
WITH_SIZES = KERNEL.replace(", int M, int N, int K)", " SIZES)")


def _template(source: str) -> Problem:
    template = Template(source, "c", "kernel", (Knob("ROWS", (1, 2, 16), 2),), ("ROWS <= M",), ("ceil(M / ROWS)",))
    return msgspec.structs.replace(matmul(21, 9, 5), family=None, template=template)


def _refusal(problem: Problem, schedule: Schedule, texts: Mapping[str, str] = TEXTS) -> Diagnostic:
    with pytest.raises(Ended) as caught:
        ir.build(problem, schedule, "c", WIDE, runtime_sizes=False, texts=texts)
    assert isinstance(caught.value.outcome, Rejected)
    return caught.value.outcome.diagnostics[0]


def _right(problem: Problem, lowered: Lowered, folder: Path) -> bool:
    shape = problem.shapes[0]
    buffers = inputs(shape)
    run(lowered, compiled(lowered, folder), shape, buffers)
    value, scale = exact(buffers)
    return bool((np.abs(buffers["y"] - np.maximum(value, 0)) <= 64 * UNIT * scale).all())


def test_a_program_text_is_a_structure_whose_constants_are_its_knobs() -> None:
    problem = matmul(22, 9, 5)
    assert NAME in ir.structures(problem, "c", TEXTS)
    assert NAME not in ir.structures(problem, "c")
    assert ir.knobs(problem, NAME, "c", WIDE, texts=TEXTS) == (Knob("rows", (2, 4, 8), 4), Knob("lanes", (4, 8, 16), 8))
    start = ir.default_schedule(problem, NAME, "c", WIDE, texts=TEXTS)
    edited = ir.apply(problem, start, "set_knob", {"knob": "rows", "value": 8}, "c", WIDE, texts=TEXTS)
    assert edited == Schedule.of(NAME, {"rows": 8, "lanes": 8})
    assert ir.multiples(problem, start, "c", WIDE, texts=TEXTS) == {"M": 2, "N": 1, "K": 1}
    gone = ir.apply(problem, start, "change_structure", {"structure": "naive"}, "c", WIDE, texts=TEXTS)
    assert gone == Schedule("naive")


@pytest.mark.cc
@pytest.mark.parametrize("runtime", [False, True])
def test_a_program_text_runs_with_the_problems_sizes(runtime: bool, tmp_path: Path) -> None:
    problem = matmul(22, 9, 5)
    schedule = Schedule.of(NAME, {"rows": 8, "lanes": 4})
    program = ir.build(problem, schedule, "c", WIDE, runtime_sizes=runtime, texts=TEXTS)
    assert "rows = 8" in ir.text_of(program)
    assert ("size M = 22" in ir.text_of(program)) != runtime
    assert _right(problem, ir.lower(program, "c", WIDE.arch, problem.shapes), tmp_path)


def test_a_program_text_that_does_not_fit_is_refused_by_name() -> None:
    start = Schedule(NAME)
    assert _refusal(matmul(21, 9, 5), start).field == "M"
    assert _refusal(matmul(21, 9, 5), start).nearest == "20"
    assert _refusal(matmul(22, 9, 5), Schedule("text-000000000000")).field == "structure"
    assert _refusal(matmul(22, 9, 5), start.with_knobs({"rows": 3})).nearest == "2"
    broken = {NAME: TEXT.replace("for k in 0..K:", "for k in 0..K")}
    assert _refusal(matmul(22, 9, 5), start, broken).field == "line 14"
    other = {NAME: TEXT.replace("f32[N]", "f32[M]")}
    assert _refusal(matmul(22, 9, 5), start, other).field == "bias"
    more = {NAME: TEXT.replace("  param y", "  param z: f32[M]\n  param y")}
    assert _refusal(matmul(22, 9, 5), start, more).field == "z"
    cuda = {NAME: TEXT.replace("target c x86-64-v4", "target cuda sm_90a")}
    assert _refusal(matmul(22, 9, 5), start, cuda).field == "target"


@pytest.mark.cc
@pytest.mark.parametrize("source", [KERNEL, WITH_SIZES])
@pytest.mark.parametrize("runtime", [False, True])
def test_a_users_own_kernel_runs_with_its_knobs_as_macros(source: str, runtime: bool, tmp_path: Path) -> None:
    problem = _template(source)
    assert ir.structures(problem, "c") == ("template",)
    schedule = ir.first_schedule(problem, "c", WIDE)
    assert schedule == Schedule.of("template", {"ROWS": 2})
    schedule = ir.apply(problem, schedule, "set_knob", {"knob": "ROWS", "value": 16}, "c", WIDE)
    program = ir.build(problem, schedule, "c", WIDE, runtime_sizes=runtime)
    assert isinstance(program, Opaque)
    assert ir.text_of(program) == ""
    lowered = ir.lower(program, "c", WIDE.arch, problem.shapes)
    assert lowered.plans[0].launches[0].grid == (2, 1, 1)
    assert ("#define M 21" in lowered.source) == (source is WITH_SIZES and not runtime)
    assert _right(problem, lowered, tmp_path)


def test_a_template_refuses_what_its_folder_forbids() -> None:
    problem = _template(KERNEL)
    small = msgspec.structs.replace(problem, shapes=matmul(4, 9, 5).shapes)
    found = _refusal(small, Schedule.of("template", {"ROWS": 16}))
    assert (found.law, found.field, found.found) == ("require", "ROWS <= M", "ROWS = 16")
    assert _refusal(problem, Schedule.of("template", {"ROWS": 3})).nearest == "2"
    assert _refusal(problem, Schedule("naive")).field == "structure"
    assert ir.structures(problem, "cuda") == ()
    for edit, arguments in (("tiling", {"tile_size": 64}), ("shared_memory", {}), ("split_k", {"parts": 2})):
        _edit_refused(problem, edit, arguments)


def _edit_refused(problem: Problem, edit: str, arguments: dict[str, KnobValue]) -> None:
    with pytest.raises(Ended):
        ir.apply(problem, ir.first_schedule(problem, "c", WIDE), edit, arguments, "c", WIDE)
