"""How lowered CUDA reads, what its launch plans ask for, and that what lowering lacks is refused by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cake_tui import ir
from cake_tui.errors import Ended
from cake_tui.ir import text
from cake_tui.ir.lower.cuda import prelude
from cake_tui.model.lowered import Argument, TensorMap
from cake_tui.model.outcome import Rejected
from cake_tui.model.problem import Shape
from tests.ir.cuda_programs import NAMES, lowered, parse, shape_of

GOLDEN = Path(__file__).parent / "golden" / "cuda"
MAP = """\
program map ir 1 target cuda sm_90a
  size N = {size}
  param x: {dtype}[N] align 16
  param y: {out}[N] out align 16
launch main grid b = ceil(N/1024) threads 256
  y[n in b*1024 +: 1024] = {value} vector {vector} where n < N
"""


def _kernel(source: str) -> str:
    """Return what stands below the prelude."""
    return source.rpartition("// --- kernel ---\n")[2]


def _map(value: str, vector: int = 4, size: int = 4096, dtype: str = "f32", out: str = "f32") -> str:
    program = text.parse(MAP.format(value=value, vector=vector, size=size, dtype=dtype, out=out))
    return ir.lower(program, "cuda", "sm_90a", (Shape((("N", size),)),)).source


@pytest.mark.parametrize(
    "name",
    ["naive", "register_blocked", "cp_async_ring", "split_k", "kmeans_roles", "tma_ring", "persistent_gemm",
     "row_sum_warp", "softmax_two_pass", "transpose"],
)  # fmt: skip
def test_the_source_reads_as_agreed(name: str, golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / f"{name}.cu", lowered(name).source)


def _check_refusal(outcome: object) -> None:
    assert isinstance(outcome, Rejected)
    (diagnostic,) = outcome.diagnostics
    assert diagnostic.field
    assert diagnostic.found
    assert diagnostic.needed


@pytest.mark.parametrize("name", NAMES)
def test_a_program_is_lowered_or_refused_by_name(name: str) -> None:
    try:
        made = lowered(name)
    except Ended as ended:
        _check_refusal(ended.outcome)
        return
    program = parse(name)
    assert [launch.name for launch in program.launches] == [
        launch.entry.removesuffix("_") for launch in made.plans[0].launches
    ]
    for launch in made.plans[0].launches:
        assert f" {launch.entry}(" in made.source


@pytest.mark.parametrize("name", NAMES)
def test_hardware_instructions_stand_in_the_prelude_alone(name: str) -> None:
    try:
        source = lowered(name).source
    except Ended:
        pytest.skip("refused")
    assert "asm" not in _kernel(source)
    assert "#include" not in source
    # NVRTC has no headers, and every definition is there once and in front of what calls it.
    defined = [block for block in prelude.blocks() if block.text in source]
    assert all(source.count(block.text) == 1 for block in defined)
    for block in defined:
        for other in defined:
            if other.name in block.words - {block.name}:
                assert source.index(other.text) < source.index(block.text), (block.name, other.name)


@pytest.mark.parametrize("name", NAMES)
def test_a_source_holds_no_function_that_it_does_not_call(name: str) -> None:
    try:
        source = lowered(name).source
    except Ended:
        pytest.skip("refused")
    for block in prelude.blocks():
        if block.text in source:
            assert re.search(rf"\b{block.name}\b", source.replace(block.text, "")), block.name


def test_arguments_are_buffers_then_sizes_then_tensor_maps() -> None:
    launch = lowered("tma_ring").plans[0].launches[0]
    assert launch.arguments == (
        Argument("buffer", "bias"), Argument("buffer", "y"), Argument("tensor_map", "a_map"),
        Argument("tensor_map", "b_map"),
    )  # fmt: skip
    assert launch.tensor_maps == (
        TensorMap("a_map", "a", "f32", (1024, 1024), (4096,), (16, 128), 64),
        TensorMap("b_map", "b", "f32", (1024, 1024), (4096,), (128, 16), 0),
    )
    assert (launch.grid, launch.block, launch.cluster) == ((8, 8, 1), (384, 1, 1), (1, 1, 1))
    # 3 slots of 128 x 16 and 16 x 128 floats, and 9 barriers of 8 bytes behind them.
    assert launch.smem_bytes == 3 * (128 * 16 + 16 * 128) * 4 + 9 * 8
    runtime = lowered("tiled_tails").plans[0].launches[0]
    assert runtime.arguments[-3:] == (Argument("size", "M"), Argument("size", "N"), Argument("size", "K"))


def test_tensor_maps_follow_the_shape_of_the_plan() -> None:
    source = text.render(parse("tma_tails"))
    for size in "MNK":
        source = re.sub(rf"size {size} = 1000( multiple 4)?", f"size {size} runtime multiple 4 from 4 to 4096", source)
    program = text.parse(source)
    shapes = tuple(Shape((("M", m), ("N", n), ("K", k))) for m, n, k in ((64, 64, 64), (100, 72, 84)))
    made = ir.lower(program, "cuda", program.arch, shapes)
    first, second = (plan.launches[0].tensor_maps for plan in made.plans)
    assert [one.dims for one in first] == [(64, 64), (64, 64)]
    assert [(one.dims, one.strides_bytes) for one in second] == [((84, 100), (336,)), ((72, 84), (288,))]


def test_small_shared_memory_is_static_and_large_is_dynamic() -> None:
    assert lowered("register_blocked").plans[0].launches[0].smem_bytes == 0
    persistent = lowered("persistent_gemm").plans[0].launches[0]
    assert persistent.smem_bytes == 4 * (128 * 32 + 32 * 128) * 4 + 12 * 8
    assert persistent.grid == (132, 1, 1)


def test_a_cluster_lies_along_the_axis_that_says_so() -> None:
    # Axes p and r: the last one is x.
    launch = lowered("cluster_reduce").plans[0].launches[0]
    assert (launch.grid, launch.cluster) == ((256, 4, 1), (1, 4, 1))


def test_grids_that_y_cannot_hold_are_flat() -> None:
    program = text.parse(
        "program moved ir 1 target cuda sm_80\n  size R = 100000\n  param x: f32[R, 64]\n  param y: f32[R, 64] out\n"
        "launch main grid r = R, c = 2 threads 32\n  y[r, j in c*32 +: 32] = x[r, j]\n"
    )
    made = ir.lower(program, "cuda", "sm_80", (Shape((("R", 100000),)),))
    assert made.plans[0].launches[0].grid == (200000, 1, 1)
    assert "blockIdx.y" not in made.source


def test_grouped_order_takes_rows_of_blocks_together() -> None:
    source = lowered("persistent_gemm").source
    tiles_m, tiles_n, group = 16, 16, 8
    seen = []
    for tile in range(tiles_m * tiles_n):
        first_row = tile // (group * tiles_n) * group
        rows = min(group, tiles_m - first_row)
        seen.append((first_row + tile % (group * tiles_n) % rows, tile % (group * tiles_n) // rows))
    assert sorted(seen) == [(m, n) for m in range(tiles_m) for n in range(tiles_n)]
    assert {m for m, _ in seen[: group * tiles_n]} == set(range(group))
    assert "const int m = first_row + tile % (G * ceil_div(N, BN)) % rows;" in source


def test_offsets_beyond_32_bits_are_counted_in_64() -> None:
    assert "long long" not in lowered("naive").source
    assert "const long long m" in lowered("naive_runtime").source


def test_vectors_need_aligned_rows_and_say_so() -> None:
    assert "load_vector<4>" in _map("x[n]*2")
    # 1002 elements: the last vector is half a one.
    assert "load_part<4>(x_vector, &x[n], 1002 - n" in _map("x[n]*2", size=1002).replace("N - n", "1002 - n")
    assert "load_vector" not in _map("x[n]*2", vector=1)


def test_what_does_not_move_in_vectors_is_read_apart() -> None:
    source = _kernel(_map("x[n] + x[n % 7]"))
    assert "load_vector<4>(x_vector, &x[n])" in source
    assert "x[(n + v) % 7]" in source


PRODUCT = """\
program product ir 1 target cuda sm_90a
  size K = 64
  param a: f32[K, 64] align 16
  param b: f32[K, 64] align 16
  param y: f32[64, 64] out align 16
launch main threads 256
  shared a_tile: f32[K, 64]
  shared b_tile: f32[K, 64]
  register acc: f32[64, 64] spread 16 x 16 threads, 4 x 4 each = 0
{more}  copy a -> a_tile vector 4
  copy b -> b_tile vector 4
  barrier block
  for k in 0..K:
    acc += outer(a_tile[k, :], b_tile[k, :]) math fma
  copy acc -> y vector 4
"""


def _threads_of(more: str = "") -> tuple[list[int], list[int]]:
    """Return ty and tx of every thread of the product's block, calculated from its source."""
    program = text.parse(PRODUCT.format(more=more))
    source = ir.lower(program, "cuda", "sm_90a", (Shape((("K", 64),)),)).source
    found = []
    for name in ("ty", "tx"):
        (formula,) = re.findall(rf"const int {name} = (.*);", source)
        found.append([eval(formula.replace("/", "//"), {"thread": thread}) for thread in range(256)])
    return found[0], found[1]


def test_a_warp_of_a_product_covers_a_block_of_threads_in_pairs() -> None:
    ty, tx = _threads_of()
    assert len(set(zip(ty, tx))) == 256
    for first in range(0, 256, 32):
        rows, columns = ty[first : first + 32], tx[first : first + 32]
        assert (len(set(rows)), len(set(columns))) == (4, 8)
        # Half a warp reads eight runs of b, which are 128 bytes, in neighbouring pairs of lanes, and two of a.
        assert all(columns[lane] == columns[lane + 1] for lane in range(0, 32, 2))
        assert len(set(columns[:16])) == 8
        assert len(set(rows[:16])) == 2


@pytest.mark.parametrize(
    "more",
    [
        "  register row: f32[64] spread 16 threads, 4 each\n  reduce acc over 1 with add -> row within warp\n",
        "  register part: f32[8, 16] spread 8 x 16 threads, 1 x 1 each = 0\n  y[0 +: 8, 0 +: 16] = part\n",
    ],
)
def test_threads_keep_their_order_where_something_else_goes_by_it(more: str) -> None:
    ty, tx = _threads_of(more)
    assert (ty, tx) == ([thread // 16 for thread in range(256)], [thread % 16 for thread in range(256)])


def test_no_option_changes_what_numbers_come_out() -> None:
    assert not any("fast" in option or "ftz" in option for option in lowered("softmax_two_pass").options)
    assert "-std=c++17" in lowered("naive").options


def test_names_that_the_language_keeps_get_an_underscore() -> None:
    source = _kernel(lowered("attention_online").source)
    assert "float new_[4];" in source
    assert not re.search(r"\bnew\b", source)
    program = text.parse(
        MAP.format(value="class[n]", vector=1, size=64, dtype="f32", out="f32").replace(" x:", " class:")
    )
    made = ir.lower(program, "cuda", "sm_90a", (Shape((("N", 64),)),))
    assert made.plans[0].launches[0].arguments[0] == Argument("buffer", "class")
    assert "const float *__restrict__ class_" in made.source


def test_a_launch_is_called_by_its_own_name_or_refused() -> None:
    source = MAP.format(value="x[n]", vector=1, size=64, dtype="f32", out="f32").replace("launch main", "launch delete")
    with pytest.raises(Ended) as refused:
        ir.lower(text.parse(source), "cuda", "sm_90a", (Shape((("N", 64),)),))
    assert isinstance(refused.value.outcome, Rejected)
    assert "delete" in refused.value.outcome.reason


def test_inputs_are_marked_as_never_written() -> None:
    source = lowered("split_k").source
    assert "const float *__restrict__ a," in source
    # The workspace is written by the first launch and only read by the second.
    assert "    float *__restrict__ part)" in source
    assert "const float *__restrict__ part)" in source


@pytest.mark.parametrize(
    ("name", "instead", "named"),
    [
        ("naive", ("spread 8 x 32 threads, 1 x 1 each", "spread lanes 4"), "acc"),
        ("register_blocked", ("spread TX threads, RN each", "spread TX*2 threads, RN/2 each"), "z"),
        ("cp_async_ring", ("else 0", "else 1"), "async_copy"),
        ("tma_tails", ("where i < M and p < K", "where i < M - 1 and p < K"), "where"),
        ("row_sum_warp", ("within warp", "within block"), "scratch"),
    ],
)
def test_what_lowering_lacks_is_refused(name: str, instead: tuple[str, str], named: str) -> None:
    source = text.render(parse(name))
    assert instead[0] in source
    program = text.parse(source.replace(*instead))
    with pytest.raises(Ended) as refused:
        ir.lower(program, "cuda", program.arch, (shape_of(program),))
    assert isinstance(refused.value.outcome, Rejected)
    assert refused.value.outcome.diagnostics[0].field == named
