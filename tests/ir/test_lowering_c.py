"""What lowered C computes element by element: functions to a few units in the last place, NaN kept, partial vectors."""

from __future__ import annotations

import ctypes
import math
import platform
import re
import subprocess
from pathlib import Path

import msgspec
import numpy as np
import pytest

from cake_tui import ir
from cake_tui.backends.cpu.compilers import find_compiler, is_clang
from cake_tui.errors import Ended
from cake_tui.ir import text
from cake_tui.ir.program import Program
from cake_tui.model.outcome import Rejected
from cake_tui.model.problem import BufferSpec, Shape
from cake_tui.model.schedule import Schedule
from tests.ir.contractions import UNIT, WIDE, compiled, inputs, matmul, run

# One row of values through `value`, a vector at a time (lanes 16) or one by one.
MAP = """\
program map ir 1 target c x86-64-v4
  size N = 1
  param x: {dtype}[N] align 4
  param y: {dtype}[N] out align 4
launch main
  for c in 0..ceil(N/16):
    y[n in c*16 +: 16] = {value} vector {lanes} where n < N
"""


def _apply(value: str, x: np.ndarray, folder: Path, lanes: int) -> np.ndarray:
    dtype = "f32" if x.dtype == np.float32 else "f64"
    program = text.parse(MAP.format(dtype=dtype, value=value, lanes=lanes).replace("N = 1", f"N = {x.size}"))
    shape = Shape((("N", x.size),))
    lowered = ir.lower(program, "c", WIDE.arch, (shape,))
    library = compiled(lowered, folder)
    y = np.full_like(x, np.nan)
    getattr(library, lowered.plans[0].launches[0].entry)(
        (ctypes.c_int * 3)(0, 0, 0), ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data)
    )
    return y


def _gelu_erf(x: float) -> float:
    return 0.5 * x * math.erfc(-x / math.sqrt(2))


def _gelu_tanh(x: float) -> float:
    inner = 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return x / (1 + math.exp(-inner)) if inner > -700 else 0.0


FUNCTIONS = {
    "relu(x[n])": lambda x: max(x, 0.0),
    "gelu_erf(x[n])": _gelu_erf,
    "gelu_tanh(x[n])": _gelu_tanh,
    "silu(x[n])": lambda x: x / (1 + math.exp(-x)),
    "sigmoid(x[n])": lambda x: 1 / (1 + math.exp(-x)),
    "exp(x[n])": math.exp,
    "tanh(x[n])": math.tanh,
    "erf(x[n])": math.erf,
    "abs(x[n])": abs,
    "square(x[n]) - 0.5": lambda x: x * x - 0.5,
    "min(x[n], 1.5, 2*x[n])": lambda x: min(x, 1.5, 2 * x),
    "max(-x[n], 0.25)": lambda x: max(-x, 0.25),
    "select(x[n] < 1 and not x[n] < -1, x[n], -3)": lambda x: x if -1 <= x < 1 else -3.0,
    "sqrt(abs(x[n]))/(1 + square(x[n]))": lambda x: math.sqrt(abs(x)) / (1 + x * x),
    "rsqrt(square(x[n]) + 1)": lambda x: 1 / math.sqrt(x * x + 1),
    "pow(abs(x[n]), 0.25)": lambda x: abs(x) ** 0.25,
    "x[n]*N - floor(x[n])": lambda x: x * 1001 - math.floor(x),
}
POINTS = np.concatenate([np.linspace(-20, 20, 801), np.geomspace(1e-6, 1, 100), -np.geomspace(1e-6, 1, 100)])


@pytest.mark.cc
@pytest.mark.parametrize("value", FUNCTIONS)
@pytest.mark.parametrize("lanes", [1, 16])
def test_functions_are_right_to_four_units(value: str, lanes: int, tmp_path: Path) -> None:
    x = POINTS.astype(np.float32)
    y = _apply(value, x, tmp_path, lanes)
    truth = np.array([FUNCTIONS[value](float(one)) for one in x])
    # Rounding of the argument is felt through the function: one unit of it, as the product's own check allows.
    allowed = 4 * np.spacing(np.abs(truth).astype(np.float32)) + UNIT * np.maximum(np.abs(x), 1e-30)
    if "exp(" in value or "N -" in value:
        allowed += UNIT * np.abs(x * truth)
    assert (np.abs(y - truth) <= allowed).all(), (x[np.argmax(np.abs(y - truth) / allowed)], value)


@pytest.mark.cc
@pytest.mark.parametrize("value", ["gelu_erf(x[n])", "exp(x[n])", "relu(x[n])", "abs(x[n])"])
def test_doubles_keep_their_digits(value: str, tmp_path: Path) -> None:
    x = np.linspace(-6, 6, 77)
    truth = np.array([FUNCTIONS[value](float(one)) for one in x])
    assert np.abs(_apply(value, x, tmp_path, 8) - truth) == pytest.approx(0, abs=1e-13)


@pytest.mark.cc
@pytest.mark.parametrize("value", [value for value in FUNCTIONS if "select" not in value])
@pytest.mark.parametrize("lanes", [1, 16])
def test_nan_comes_out_where_it_goes_in(value: str, lanes: int, tmp_path: Path) -> None:
    x = np.ones(POINTS.size, np.float32)  # as many as above: the same kernel
    x[[0, 17, 39, 1000]] = np.nan
    y = _apply(value, x, tmp_path, lanes)
    assert np.flatnonzero(np.isnan(y)).tolist() == [0, 17, 39, 1000]


@pytest.mark.cc
def test_infinities_do_not_turn_into_numbers(tmp_path: Path) -> None:
    x = np.array([np.inf, -np.inf, 1e30, -1e30, 89.0, -104.0] + [0.0] * 10, np.float32)
    exponential = _apply("exp(x[n])", x, tmp_path, 16)
    assert exponential[:6].tolist() == [np.inf, 0, np.inf, 0, np.inf, 0]
    assert _apply("relu(x[n])", x, tmp_path, 16)[:4].tolist() == [np.inf, 0, np.float32(1e30), 0]
    assert _apply("gelu_erf(x[n])", x, tmp_path, 16)[[0, 2, 3]].tolist() == [np.inf, np.float32(1e30), 0]


@pytest.mark.cc
@pytest.mark.parametrize("value", ["gelu_erf(acc + bias[n])", "gelu_tanh(acc*0.5) + bias[n]*m", "acc"])
def test_any_value_is_computed_in_every_structure(value: str, tmp_path: Path) -> None:
    problem = matmul(19, 37, 11, value)
    answers = []
    for structure in ir.structures(problem, "c"):
        schedule = ir.default_schedule(problem, structure, "c", WIDE)
        program = ir.build(problem, schedule, "c", WIDE, runtime_sizes=False)
        lowered = ir.lower(program, "c", WIDE.arch, problem.shapes)
        buffers = inputs(problem.shapes[0], seed=3)
        run(lowered, compiled(lowered, tmp_path), problem.shapes[0], buffers)
        answers.append(buffers["y"].copy())
    acc = buffers["a"].astype(np.float64) @ buffers["b"].astype(np.float64)
    bias, m = buffers["bias"].astype(np.float64), np.arange(19)[:, None]
    truth = {
        "gelu_erf(acc + bias[n])": lambda: np.vectorize(_gelu_erf)(acc + bias),
        "gelu_tanh(acc*0.5) + bias[n]*m": lambda: np.vectorize(_gelu_tanh)(acc * 0.5) + bias * m,
        "acc": lambda: acc,
    }[value]()
    for answer in answers:
        assert np.abs(answer - truth).max() < 1e-5


def test_what_c_lacks_is_refused_by_name() -> None:
    program = text.parse(MAP.format(dtype="f32", value="x[n]", lanes=1))
    shape = (Shape((("N", 1),)),)
    for old, new, field in (
        ("launch main", "launch main threads 32", "main"),
        ("launch main", "launch main persistent 4", "main"),
        ("  for c in 0..ceil(N/16):", "  for c in 0..ceil(N/16) pipeline_stage 2:", "c"),
        ("    y[n", "    barrier block\n    y[n", "Sync"),
        ("    y[n", "    async_copy x -> y completes group g\n    y[n", "async_copy"),
        ("param x: f32", "param x: bf16", "x"),
        ("param x: f32[N]", "param double: f32[N]\n  param x: f32[N]", "double"),
    ):
        changed = text.parse(text.render(program).replace(old, new, 1))
        with pytest.raises(Ended) as caught:
            ir.lower(changed, "c", WIDE.arch, shape)
        assert isinstance(caught.value.outcome, Rejected)
        assert caught.value.outcome.diagnostics[0].field == field
    with pytest.raises(Ended):
        ir.lower(program, "cuda", "sm_90a", shape)


def test_shapes_that_differ_from_the_constants_are_a_bug_of_the_caller() -> None:
    program = text.parse(MAP.format(dtype="f32", value="x[n]", lanes=1))
    with pytest.raises(ValueError, match="N is the constant 1"):
        ir.lower(program, "c", WIDE.arch, (Shape((("N", 2),)),))


def test_tiles_that_do_not_divide_a_size_are_refused() -> None:
    source = MAP.format(dtype="f32", value="x[n]", lanes=1).replace("launch main", "launch main grid g = N/2")
    program = text.parse(source.replace("N = 1", "N = 3"))
    with pytest.raises(Ended) as caught:
        ir.lower(program, "c", WIDE.arch, (Shape((("N", 3),)),))
    assert isinstance(caught.value.outcome, Rejected)
    assert "N/2 is 1.5" in caught.value.outcome.reason


@pytest.mark.cc
def test_programs_of_the_collection_for_c_agree_with_float64(tmp_path: Path) -> None:
    folder = Path(__file__).parent.parent / "programs"
    seen = 0
    for path in sorted(folder.glob("c_*.cake")):
        program = text.parse(path.read_text(encoding="utf-8"))
        if {buffer.name for buffer in program.buffers if buffer.space == "param"} != {"a", "b", "bias", "y"}:
            continue
        seen += 1
        shape = Shape(tuple((size.name, size.value or 37) for size in program.sizes))
        lowered = ir.lower(program, "c", program.arch, (shape,))
        buffers = inputs(shape)
        run(lowered, compiled(lowered, tmp_path), shape, buffers)
        acc = buffers["a"].astype(np.float64) @ buffers["b"].astype(np.float64)
        assert np.abs(buffers["y"] - np.maximum(acc + buffers["bias"], 0)).max() < 1e-4, path.name
    assert seen >= 3


def test_doubles_and_other_outputs_build() -> None:
    problem = matmul(30, 40, 50)
    buffers = tuple(msgspec.structs.replace(spec, dtype="f64") for spec in problem.buffers)
    doubles = msgspec.structs.replace(problem, buffers=buffers)
    vectors = {knob.name: knob.values for knob in ir.knobs(doubles, "packed", "c", WIDE)}["vector"]
    assert vectors == (1, 2, 4, 8)
    program = ir.build(doubles, Schedule("packed"), "c", WIDE, runtime_sizes=False)
    assert isinstance(program, Program)
    assert "double" in ir.lower(program, "c", WIDE.arch, doubles.shapes).source
    mixed = msgspec.structs.replace(problem, buffers=(BufferSpec("a", "f16", ("M", "K")), *problem.buffers[1:]))
    with pytest.raises(Ended) as caught:
        ir.build(mixed, Schedule("naive"), "c", WIDE, runtime_sizes=False)
    assert isinstance(caught.value.outcome, Rejected)
    assert caught.value.outcome.diagnostics[0].field == "dtype"


@pytest.mark.cc
@pytest.mark.skipif(platform.machine() != "x86_64", reason="looks at x86 assembly")
@pytest.mark.parametrize(("rows", "vectors", "lanes"), [(8, 2, 16), (14, 2, 16), (6, 4, 16), (12, 1, 8)])
def test_accumulators_stay_in_registers(rows: int, vectors: int, lanes: int, tmp_path: Path) -> None:
    compiler = find_compiler()
    if is_clang(compiler):
        pytest.skip("reads gcc's assembly")
    problem = matmul(672, 512, 512)
    knobs = {"thread_m": rows, "thread_n": vectors, "vector": lanes, "block_k": 512}
    program = ir.build(problem, Schedule.of("packed", knobs), "c", WIDE, runtime_sizes=False)
    lowered = ir.lower(program, "c", WIDE.arch, problem.shapes)
    source, assembly = tmp_path / "k.c", tmp_path / "k.s"
    source.write_text(lowered.source)
    command = [*compiler, *lowered.options, "-march=x86-64-v4", "-S", str(source), "-o", str(assembly)]
    subprocess.run(command, check=True, capture_output=True)
    inside = assembly.read_text().split("\nmatmul:")[1].splitlines()
    at = [number for number, line in enumerate(inside) if "vfmadd" in line]
    assert len(at) == rows * vectors
    hot = inside[at[0] : at[-1] + 1]
    assert not [line for line in hot if re.search(r"%r[sb]p\)", line) and re.search(r"%[xyz]mm", line)]
