"""The text form: canonical text round-trips byte for byte, every mistake has its line, statements have paths."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cake_tui import ir
from cake_tui.ir import walk
from cake_tui.ir.program import Copy, Declare, Expect, For, If, Program, Wait
from cake_tui.ir.text import ParseError, line_numbers, parse, render, show_statement
from tests.ir import surgery
from tests.ir.contractions import WIDE, matmul

# The flavour of the design, several declarations on a line: read as it stands, printed one a line.
FLAVOUR = """\
program matmul_bias_relu ir 1 target cuda sm_90a
  size M = 1024   size N = 1024   size K = 1024
  const BM = 128 of 64 128   const BN = 128 of 64 128   const BK = 16 of 8 16   const S = 3 of 2 3 4
  param A: global f32[M, K] align 16        param bias: global f32[N]
  param B: global f32[K, N] align 16        param Y: global f32[M, N] out

# a persistent or plain grid
launch main grid m = M/BM, n = N/BN threads 384
  warp_role load kind loader warps 0 to 3 registers 40   warp_role compute warps 4 to 11 registers 232
  shared As: f32[S, BM, BK] swizzle 64 ring      shared Bs: f32[S, BK, BN] ring
  barrier full[S] arrivals 1                barrier empty[S] arrivals 8
  register acc: f32[BM, BN] in compute spread 16 x 16 threads, 8 x 8 each, runs 1 x 4 = 0
  role load, one thread:
    for k in 0..K/BK pipeline_stage S:
      wait empty[k]
      expect full[k] bytes 4*(BM*BK + BK*BN)
      tma_copy A[m*BM +: BM, k*BK +: BK] -> As[k] completes full[k]
      tma_copy B[k*BK +: BK, n*BN +: BN] -> Bs[k] completes full[k]
  role compute:
    for k in 0..K/BK pipeline_stage S:
      wait full[k]
      for kk in 0..BK unroll 8:
        acc += outer(As[k, :, kk], Bs[k, kk, :]) math fma
      arrive empty[k] once a warp
    Y[m*BM +: BM, j in n*BN +: BN] = relu(acc + bias[j]) vector 4
"""

# Every statement and every clause once, in canonical form.
EVERYTHING = """\
program everything ir 1 target cuda sm_90a
  structure roles-2
  size M = 1024 multiple 64
  size N runtime multiple 8 from 8 to 65536
  const S = 4 of 2 3 4
  const tile = 2*S
  param a: f16[M, N] align 16 order 1 0
  param out: f32[M] inout
  workspace part: f32[S, M] align 128 pad tile + 1
launch first persistent 132 grid m = M/64, n = ceil(N/64) order grouped 8 cluster 2 x 1 threads 256
  warp_role producer warps 0 registers 40
  warp_role math kind consumer warps 1 to 4
  shared ring_a: bf16[S, 64, 64] align 1024 swizzle 128 ring
  barrier full[S] arrivals 1 + tile
  register frag: f32[64, 64] in math spread fragment m64n64k16.acc = 0
  register best: f32 = inf
  register index: i32 = 0
  register state: f32[64] spread lanes 8
  role producer, one warp:
    for k in 0..N/64 step 2 unroll 4 pipeline_stage S carry best, index:
      expect full[k] bytes 64*64*2
      async_copy a[m*64 +: 64, k*64 +: 64] -> ring_a[k] vector 8 completes group loads where m < M else 0
      commit group loads
      wait group loads pending S - 1
      wait group loads
      tma_copy a[m*64 +: 64, k*64 +: 64] -> ring_a[k] completes full[k]
  role math:
    wait full[0]
    fence async_proxy
    frag += wgmma(ring_a[0], ring_a[1]) math m64n64k16.bf16 completes group products
    frag += mma(ring_a[0, :, 0 +: 16], ring_a[1, 0 +: 16, :]) math m16n8k16.bf16
    split frag -> ring_a[0], ring_a[1], ring_a[2]
    convert frag -> state
    reduce frag over 1 with max -> state within block through part carry
    argmin frag over 1 from n*64 -> best, index within warp
    topk 8 frag over 1 -> state, index
    atomic add out[m] with state scope cluster where m < M
    state[j in 0 +: 64] = select(j < 4 and not m == 0, exp(-state), f32(a[m, j])) vector 4 where j < N else 1.5
    if m%2 == 0:
      barrier named 1 threads 128
    else:
      barrier cluster
      barrier warp
      barrier block
    copy state -> out[m*64 +: 64]
    arrive full[0]
    arrive full[1] once a role
launch second
"""


def _programs() -> list[Program]:
    made = []
    for structure in ir.structures(matmul(64, 64, 64), "c"):
        for runtime in (False, True):
            problem = matmul(65, 64, 33)
            schedule = ir.default_schedule(problem, structure, "c", WIDE)
            built = ir.build(problem, schedule, "c", WIDE, runtime_sizes=runtime)
            assert isinstance(built, Program)
            made.append(built)
    return made


def test_the_designs_flavour_parses_and_settles_in_canonical_form() -> None:
    program = parse(FLAVOUR)
    canonical = render(program)
    assert parse(canonical) == program
    assert render(parse(canonical)) == canonical
    assert len(canonical.splitlines()) == 33
    assert program.sizes[2].value == 1024
    assert program.consts[3].values == (2, 3, 4)


def test_canonical_text_comes_back_byte_for_byte() -> None:
    assert render(parse(EVERYTHING)) == EVERYTHING


def test_what_builders_make_comes_back_equal() -> None:
    for program in _programs():
        text = render(program)
        assert parse(text) == program
        assert render(parse(text)) == text


def test_programs_of_the_collection_are_canonical() -> None:
    folder = Path(__file__).parent.parent / "programs"
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.cake"))]
    assert len(texts) >= 20
    for text in texts:
        assert render(parse(text)) == text


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("ir 1 ", "ir 2 ", 1, "grammar version 1"),
        ("target cuda", "target metal", 1, "a target: c cuda"),
        ("  size N runtime", "   size N runtime", 4, "steps of 2"),
        ("  const tile = 2*S", "  const S = 2", 6, "S a second time"),
        ("  param a: f16", "  param a: f8", 7, "a dtype: f32 f16"),
        ("order 1 0", "order 0 0", 7, "each axis from 0 to 1 once"),
        ("  workspace part", "  workspace where", 9, "where is a word of the grammar"),
        ("kind consumer", "kind boss", 12, "a role's kind: producer consumer"),
        ("      commit group loads\n", "        commit group loads\n", 23, "no block begins above"),
        ("expect full[k] bytes 64*64*2", "expect full[k]", 21, "'bytes'"),
        ("async_copy a[m*64", "async_copy c[m*64", 22, "the buffer c"),
        (" completes group loads where", " where", 22, "'completes' behind an asynchronous copy"),
        ("    fence async_proxy", "    fence everything", 29, "a fence: async_proxy"),
        ("frag += wgmma", "frag = wgmma", 30, "a product only behind '+='"),
        ("    if m%2 == 0:", "    if m%2 == 0", 39, "':'"),
        ("    arrive full[0]", "    arrive full[0] now", 46, "the end of the line"),
        ("launch second", "launch first", 48, "first a second time"),
        ("launch second", "  launch second", 48, "found 'launch'"),
        ("exp(-state)", "system(-state)", 38, "the function system"),
        ("barrier cluster", "barrier moon", 42, "'['"),
    ],
)
def test_a_mistake_is_named_with_its_line(old: str, new: str, line: int, said: str) -> None:
    assert EVERYTHING.count(old) >= 1
    with pytest.raises(ParseError) as caught:
        parse(EVERYTHING.replace(old, new, 1))
    assert caught.value.line == line, str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "\n\n", "program", "launch x\n", "\x00", "program p ir 1 target c v\n", "\ttab", "\udcff"]
)
def test_texts_that_are_no_programs_are_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)


def test_deep_and_long_texts_are_refused_without_a_crash() -> None:
    deep = "".join(f"{'  ' * depth}for k{depth} in 0..2:\n" for depth in range(1, 900))
    with pytest.raises(ParseError, match="at most 40 deep"):
        parse(f"program p ir 1 target c v\nlaunch x\n{deep}")
    with pytest.raises(ParseError, match="at most 20000"):
        parse("\n" * 30_000)


def test_every_statement_has_a_line_and_can_be_taken_out() -> None:
    program = parse(EVERYTHING)
    numbers = line_numbers(program)
    rows = EVERYTHING.splitlines()
    visited = list(walk.walk(program))
    assert len(visited) == len(numbers) == 36
    for path, statement in visited:
        assert rows[numbers[path] - 1].strip() == show_statement(statement)
        assert surgery.get(program, path) == statement
        assert surgery.replace(program, path, (statement,)) == program
        assert surgery.remove(program, path) != program
    barriers = [path for path, statement in visited if show_statement(statement) == "barrier warp"]
    assert [numbers[path] for path in barriers] == [43]
    assert "barrier warp" not in render(surgery.remove(program, barriers[0]))
    with pytest.raises(KeyError):
        surgery.get(program, (0, 99))
    with pytest.raises(KeyError):
        surgery.remove(program, (0, 0, 5))


@given(st.data())
def test_what_is_left_of_a_program_still_prints_and_parses(data: st.DataObject) -> None:
    program = parse(EVERYTHING)
    for _ in range(data.draw(st.integers(1, 8))):
        paths = [path for path, statement in walk.walk(program) if not isinstance(statement, Declare)]
        program = surgery.remove(program, data.draw(st.sampled_from(paths))) if paths else program
    assert parse(render(program)) == program
    assert render(parse(render(program))) == render(program)


def test_reads_and_writes_name_the_tiles() -> None:
    program = parse(FLAVOUR)
    found = {}
    for _, statement in walk.walk(program):
        found[type(statement)] = (
            [ref.buffer for ref in walk.reads(statement)],
            [ref.buffer for ref in walk.writes(statement)],
        )
    assert found[Copy] == (["B"], ["Bs"])
    assert found[Declare] == ([], ["acc"])
    assert found[Wait] == found[Expect] == found[For] == ([], [])
    assert If not in found
