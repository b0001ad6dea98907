"""Structures of the contraction family on c: right at every size, in both builds, for every legal knob."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cake_tui import ir
from cake_tui.errors import Ended, UserError
from cake_tui.ir import laws
from cake_tui.model.outcome import Rejected
from cake_tui.model.schedule import KnobValue, Schedule
from tests.ir.contractions import NARROW, UNIT, WIDE, compiled, exact, inputs, matmul, run

GOLDEN = Path(__file__).parent / "golden"
STRUCTURES = ir.structures(matmul(8, 8, 8), "c")
SHAPES = [(1, 1, 1), (3, 5, 7), (64, 96, 48), (33, 17, 65), (1, 130, 9), (70, 1, 3), (50, 49, 300)]
SETTINGS: dict[str, list[dict[str, KnobValue]]] = {
    "naive": [{}],
    "tiled": [
        {},
        {"thread_m": 6, "thread_n": 2, "vector": 8, "block_k": 16, "threads_x": 2, "threads_y": 1, "unroll": 4},
        {"thread_m": 4, "thread_n": 1, "vector": 16, "shared": True, "pad": 1, "block_k": 32, "threads_x": 2},
        {"thread_m": 1, "vector": 1, "thread_n": 3, "shared": True, "pad": 16, "threads_x": 1, "threads_y": 1},
    ],
    "packed": [
        {},
        {
            "thread_m": 8,
            "thread_n": 2,
            "vector": 16,
            "block_k": 64,
            "threads_x": 1,
            "threads_y": 2,
            "unroll": 2,
            "pad": 1,
            "shared": True,
        },
        {"thread_m": 6, "thread_n": 4, "vector": 4, "shared": False, "block_k": 1024, "threads_x": 8},
        {"thread_m": 2, "thread_n": 1, "vector": 1, "block_k": 128, "pad": 8, "shared": True},
    ],
    "split_k": [
        {},
        {"split_k": 16, "thread_m": 8, "thread_n": 2, "vector": 16, "threads_y": 1, "unroll": 4},
        {"split_k": 4, "thread_m": 1, "vector": 1},
    ],
}

SETTINGS |= {structure: [{}] for structure in STRUCTURES if structure not in SETTINGS}  # a new one at its defaults


def _schedule(structure: str, knobs: dict[str, KnobValue]) -> Schedule:
    return ir.default_schedule(matmul(512, 512, 512), structure, "c", WIDE).with_knobs(knobs)


def test_the_settings_are_of_structures_that_are_there() -> None:
    assert set(SETTINGS) <= set(STRUCTURES)
    assert STRUCTURES[0] == "naive"


@pytest.mark.cc
@pytest.mark.parametrize(
    ("structure", "knobs"), [(structure, knobs) for structure, many in SETTINGS.items() for knobs in many]
)
def test_the_run_time_build_is_right_at_every_size(structure: str, knobs: dict[str, KnobValue], tmp_path: Path) -> None:
    problem = matmul(*SHAPES[0])
    program = ir.build(problem, _schedule(structure, knobs), "c", WIDE, runtime_sizes=True)
    shapes = [matmul(*sizes).shapes[0] for sizes in SHAPES]
    lowered = ir.lower(program, "c", WIDE.arch, shapes)
    library = compiled(lowered, tmp_path)
    for shape in shapes:
        buffers = inputs(shape)
        run(lowered, library, shape, buffers)
        value, scale = exact(buffers)
        assert (np.abs(buffers["y"] - np.maximum(value, 0)) <= 64 * UNIT * scale).all(), shape.text


@pytest.mark.cc
@pytest.mark.parametrize(
    ("structure", "knobs"), [(structure, knobs) for structure, many in SETTINGS.items() for knobs in many[-2:]]
)
@pytest.mark.parametrize("sizes", [(64, 96, 48), (33, 17, 65)])
def test_the_full_build_is_right(
    structure: str, knobs: dict[str, KnobValue], sizes: tuple[int, int, int], tmp_path: Path
) -> None:
    problem = matmul(*sizes)
    lowered = ir.lower(
        ir.build(problem, _schedule(structure, knobs), "c", WIDE, runtime_sizes=False), "c", WIDE.arch, problem.shapes
    )
    buffers = inputs(problem.shapes[0])
    run(lowered, compiled(lowered, tmp_path), problem.shapes[0], buffers)
    value, scale = exact(buffers)
    assert (np.abs(buffers["y"] - np.maximum(value, 0)) <= 64 * UNIT * scale).all()


@pytest.mark.cc
@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_nan_reaches_its_row_and_nothing_else(structure: str, tmp_path: Path) -> None:
    problem = matmul(9, 20, 5)
    lowered = ir.lower(
        ir.build(problem, _schedule(structure, {}), "c", WIDE, runtime_sizes=False), "c", WIDE.arch, problem.shapes
    )
    buffers = inputs(problem.shapes[0])
    buffers["a"][3, 2] = np.nan
    run(lowered, compiled(lowered, tmp_path), problem.shapes[0], buffers)
    assert np.isnan(buffers["y"][3]).all()
    assert not np.isnan(np.delete(buffers["y"], 3, axis=0)).any()


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("build", ["full", "runtime"])
def test_the_source_reads_as_agreed(structure: str, build: str, golden: Callable[[Path, str], None]) -> None:
    problem = matmul(512, 512, 512)
    program = ir.build(problem, _schedule(structure, {}), "c", WIDE, runtime_sizes=build == "runtime")
    golden(GOLDEN / f"{structure}-{build}.c", ir.lower(program, "c", WIDE.arch, problem.shapes).source)


@pytest.mark.parametrize("structure", ["tiled", "packed"])
def test_staged_operands_read_as_agreed(structure: str, golden: Callable[[Path, str], None]) -> None:
    problem = matmul(504, 512, 512)
    knobs: dict[str, KnobValue] = {"shared": True, "pad": 4, "thread_m": 6, "vector": 8, "block_k": 64}
    program = ir.build(problem, _schedule(structure, knobs), "c", WIDE, runtime_sizes=False)
    golden(GOLDEN / f"{structure}-staged.c", ir.lower(program, "c", WIDE.arch, problem.shapes).source)


DEVICES = {
    "AVX-512": (WIDE, (14, 2, 16)),
    "AVX2": (msgspec.structs.replace(WIDE, vector_bytes=32, vector_registers=16), (6, 2, 8)),
    "SSE": (NARROW, (6, 2, 4)),
    "NEON": (msgspec.structs.replace(NARROW, vector_registers=32), (14, 2, 4)),
    "unknown": (msgspec.structs.replace(WIDE, vector_bytes=0, vector_registers=0, l2_bytes=0, cores=0), (6, 2, 4)),
    "many cores": (msgspec.structs.replace(WIDE, cores=96, l1_bytes=1 << 20), (14, 2, 16)),
}


@pytest.mark.parametrize("name", DEVICES)
def test_defaults_fill_the_registers_of_the_device_with_its_widest_vectors(name: str) -> None:
    device, expected = DEVICES[name]
    for structure in ("tiled", "packed", "split_k"):
        known = dict(ir.default_schedule(matmul(512, 512, 512), structure, "c", device).knobs)
        assert (known["thread_m"], known["thread_n"], known["vector"]) == expected, structure


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize(
    "sizes", [(512, 512, 512), (1, 1, 1), (3, 5, 7), (7, 4096, 1), (4096, 1, 300), (13, 17, 99999)]
)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_defaults_are_legal_on_every_device_at_every_size(name: str, sizes: tuple[int, int, int], dtype: str) -> None:
    device, problem = DEVICES[name][0], matmul(*sizes)
    buffers = tuple(msgspec.structs.replace(spec, dtype=dtype) for spec in problem.buffers)
    problem = msgspec.structs.replace(problem, buffers=buffers)
    for structure in STRUCTURES:
        for knob in ir.knobs(problem, structure, "c", device):
            assert knob.default in knob.values, (structure, knob.name)
        schedule = ir.default_schedule(problem, structure, "c", device)
        program = ir.build(problem, schedule, "c", device, runtime_sizes=False)
        assert laws.verify(program, device) == (), structure


def test_default_tasks_are_small_enough_for_each_core_to_get_some() -> None:
    def sides(cores: int, *sizes: int) -> tuple[KnobValue | None, ...]:
        device = msgspec.structs.replace(WIDE, cores=cores)
        schedule = ir.default_schedule(matmul(*sizes), "packed", "c", device)
        return schedule.knob("threads_x"), schedule.knob("threads_y")

    # 512 x 512 are 37 x 16 register blocks of 14 x 32: 10 x 4 tasks of 4 x 4, or 19 x 8 of 2 x 2, or one each
    assert sides(2, 512, 512, 512) == (4, 4)
    assert sides(10, 512, 512, 512) == (4, 4)
    assert sides(11, 512, 512, 512) == (2, 2)
    assert sides(39, 512, 512, 512) == (1, 1)
    assert sides(2, 14, 32, 512) == (1, 1)


def test_a_default_depth_leaves_the_first_cache_room_for_a() -> None:
    for l1_bytes, expected in ((48 << 10, 256), (32 << 10, 128), (0, 128), (1 << 20, 512), (64, 16)):
        device = msgspec.structs.replace(WIDE, l1_bytes=l1_bytes)
        for structure in ("tiled", "packed"):  # a column tile of b is 32 wide: 128 bytes a step of k
            assert ir.default_schedule(matmul(512, 512, 512), structure, "c", device).knob("block_k") == expected


def test_proven_guards_leave_no_branch() -> None:
    divided, tailed = matmul(504, 512, 512), matmul(500, 500, 500)  # 504 is 9 blocks of 4 by 14 rows
    for structure in STRUCTURES:
        knobs: dict[str, KnobValue] = {"block_k": 512} if structure in ("tiled", "packed") else {}
        sources = [
            ir.lower(
                ir.build(problem, _schedule(structure, knobs), "c", WIDE, runtime_sizes=False),
                "c",
                "x86-64-v4",
                problem.shapes,
            ).source
            for problem in (divided, tailed)
        ]
        assert "if (" not in sources[0]
        assert "_part" not in sources[0]
        assert sources[0] != sources[1]


def test_constants_that_change_nothing_are_left_out_so_that_equal_code_is_equal() -> None:
    problem = matmul(64, 64, 64)
    sources = {
        ir.lower(
            ir.build(problem, _schedule("packed", {"block_k": block, "shared": False}), "c", WIDE, runtime_sizes=False),
            "c", WIDE.arch, problem.shapes,
        ).sha256
        for block in (64, 256)
    }  # fmt: skip
    assert len(sources) == 1


def test_a_register_block_beyond_the_registers_is_refused_with_the_figures() -> None:
    problem = matmul(64, 64, 64)
    with pytest.raises(Ended) as caught:
        ir.build(problem, _schedule("packed", {"thread_m": 12, "thread_n": 3}), "c", WIDE, runtime_sizes=False)
    outcome = caught.value.outcome
    assert isinstance(outcome, Rejected)
    found = outcome.diagnostics[0]
    assert (found.field, found.limit, found.asked, found.available) == ("thread_m", "vector registers", 40, 32)
    assert found.nearest == "thread_m = 8 or thread_n = 2"  # values there are, 8*3+3+1 and 12*2+2+1 registers


def test_legal_vectors_follow_the_device() -> None:
    wide = {knob.name: knob.values for knob in ir.knobs(matmul(8, 8, 8), "packed", "c", WIDE)}
    narrow = {knob.name: knob.values for knob in ir.knobs(matmul(8, 8, 8), "packed", "c", NARROW)}
    assert (wide["vector"], narrow["vector"]) == ((1, 4, 8, 16), (1, 4))


def test_ordered_sums_refuse_split_k() -> None:
    with pytest.raises(Ended) as caught:
        ir.build(matmul(8, 8, 8, accumulation="ordered"), _schedule("split_k", {}), "c", WIDE, runtime_sizes=False)
    assert isinstance(caught.value.outcome, Rejected)
    assert caught.value.outcome.diagnostics[0].field == "accumulation"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("relu(acc + bias[n]", "value, line 1, column 19"),
        ("acc + skip[m, n]", "value uses skip"),
        ("acc * scale", "value uses scale"),
        ("frobnicate(acc)", "the function frobnicate"),
    ],
)
def test_a_value_that_makes_no_sense_is_the_users_mistake(value: str, said: str) -> None:
    with pytest.raises(UserError, match="kernel matmul_bias") as caught:
        ir.build(matmul(8, 8, 8, value), _schedule("naive", {}), "c", WIDE, runtime_sizes=False)
    assert said in str(caught.value)


def test_knob_values_are_checked_with_the_nearest_legal_one() -> None:
    for knobs, field, nearest in (
        ({"vector": 7}, "vector", "8"),
        ({"block_k": 4096}, "block_k", "1024"),
        ({"deep": 1}, "deep", None),
    ):
        with pytest.raises(Ended) as caught:
            ir.build(matmul(8, 8, 8), _schedule("packed", knobs), "c", WIDE, runtime_sizes=False)
        assert isinstance(caught.value.outcome, Rejected)
        found = caught.value.outcome.diagnostics[0]
        assert (found.field, found.nearest) == (field, nearest)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_every_legal_schedule_lowers_or_says_why_not(data: st.DataObject) -> None:
    problem = matmul(*(data.draw(st.integers(1, 300)) for _ in range(3)))
    structure = data.draw(st.sampled_from(STRUCTURES))
    device = data.draw(st.sampled_from([WIDE, NARROW]))
    knobs = {knob.name: data.draw(st.sampled_from(knob.values)) for knob in ir.knobs(problem, structure, "c", device)}
    schedule = Schedule.of(structure, knobs)
    runtime = data.draw(st.booleans())
    refused: Rejected | None = None
    try:
        program = ir.build(problem, schedule, "c", device, runtime_sizes=runtime)
    except Ended as ended:
        refused = ended.outcome if isinstance(ended.outcome, Rejected) else None
    if "thread_m" in knobs and knobs["thread_m"] * knobs["thread_n"] + knobs["thread_n"] + 1 > device.vector_registers:
        assert refused is not None
        assert refused.diagnostics[0].field == "thread_m"
        return
    assert refused is None
    lowered = ir.lower(program, "c", device.arch, problem.shapes)
    assert lowered.plan(problem.shapes[0]).launches
    assert lowered == ir.lower(program, "c", device.arch, problem.shapes)
