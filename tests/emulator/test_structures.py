"""Every structure for cuda, rendered and run on the CPU: right at aligned and odd sizes, and no part of it is idle.

`--soak` runs twenty times as many knob combinations.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Iterator

import msgspec
import pytest

from cake_tui import ir, kernels
from cake_tui.errors import Ended
from cake_tui.ir import laws, text
from cake_tui.ir.program import Program
from cake_tui.model.lowered import Lowered
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Schedule
from tests.emulator import Fault, compiling
from tests.emulator.judging import judge
from tests.emulator.source import kernels_of
from tests.ir.devices import H200
from tests.ir.mutants import mutants

ALIGNED, ODD, DEEP = (64, 128, 96), (45, 67, 53), (37, 52, 120)
COMBINATIONS = 480
# A statement on a line of its own that orders or moves; what a condition in front of it guards goes with it.
ORDERING = re.compile(
    r"\n *(?:if \([^{}\n]*\)\n *)?"
    r"(?:__sync\w+|cp_async_\w+|barrier_\w+|named_barrier|cluster_sync|tma_\w+|fence_async\w+)"
    r"(?:<[^>\n]*>)?\([^;]*\);(?=\n)"
)

pytestmark = [pytest.mark.cc, pytest.mark.skipif(bool(compiling.missing()), reason=compiling.missing())]


@functools.cache
def _problem(kernel: str, sizes: tuple[int, ...]) -> Problem | None:
    """Return a packaged kernel at sizes that the emulator runs in no time; None where it is not for cuda."""
    try:
        problem = kernels.load(kernel, target="cuda")
        shape = ",".join(f"{name}={size}" for name, size in zip(problem.size_names, sizes))
        return kernels.load(kernel, target="cuda", shapes=[shape])
    except kernels.OtherTarget:
        return None


def _structures() -> Iterator[tuple[str, str]]:
    for kernel in kernels.names():
        problem = _problem(kernel, ALIGNED)
        if problem is not None:
            yield from ((kernel, structure) for structure in ir.structures(problem, "cuda"))


STRUCTURES = list(_structures())
CONTRACTIONS = [structure for kernel, structure in STRUCTURES if kernel == "matmul_bias_relu"]


def _lowered(problem: Problem, program: Program | ir.Opaque) -> Lowered:
    return ir.lower(program, "cuda", H200.arch, problem.shapes)


def _default(problem: Problem, structure: str, *, runtime: bool = False) -> Program | ir.Opaque:
    schedule = ir.default_schedule(problem, structure, "cuda", H200)
    return ir.build(problem, schedule, "cuda", H200, runtime_sizes=runtime)


@pytest.mark.parametrize(("kernel", "structure"), STRUCTURES)
@pytest.mark.parametrize("sizes", [ALIGNED, ODD], ids=["aligned", "odd"])
def test_a_structure_is_right(kernel: str, structure: str, sizes: tuple[int, ...]) -> None:
    problem = _problem(kernel, sizes)
    assert problem is not None
    for runtime in (False, True):
        lowered = _lowered(problem, _default(problem, structure, runtime=runtime))
        assert judge(lowered, problem, "integers", seed=2) is None
    assert judge(lowered, problem, "default", seed=3) is None


def test_any_legal_knobs_are_right(soak_share: float) -> None:
    wrong = []
    for number in range(round(COMBINATIONS * soak_share)):
        kernel, structure = STRUCTURES[number % len(STRUCTURES)]
        draw = random.Random(number)
        problem, schedule, program = _drawn(draw, kernel, structure)
        found = judge(_lowered(problem, program), problem, draw.choice(("default", "integers")), seed=number)
        if found is not None:
            wrong.append(f"{number}: {kernel} {schedule.text}: {found}")
    assert not wrong, "\n".join(wrong)


def _drawn(draw: random.Random, kernel: str, structure: str) -> tuple[Problem, Schedule, Program | ir.Opaque]:
    """Draw sizes, knobs and build until nothing refuses them."""
    for _ in range(1000):
        sizes = [draw.choice((draw.randint(1, 130), 4 * draw.randint(10, 32), 16 * draw.randint(3, 8))) for _ in "MNK"]
        problem = _problem(kernel, tuple(sizes))
        assert problem is not None
        knobs = {knob.name: draw.choice(knob.values) for knob in ir.knobs(problem, structure, "cuda", H200)}
        schedule = Schedule.of(structure, knobs)
        try:
            program = ir.build(problem, schedule, "cuda", H200, runtime_sizes=draw.random() < 0.5)
        except Ended:
            continue
        if not laws.verify(program, H200):
            return problem, schedule, program
    raise AssertionError(f"no legal knobs of {structure}")


# --- what is taken out is missed ------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", CONTRACTIONS)
def test_each_line_that_orders_or_copies_is_needed(structure: str) -> None:
    problem = _problem("matmul_bias_relu", DEEP)
    assert problem is not None
    lowered = _lowered(problem, _default(problem, structure))
    assert judge(lowered, problem, "integers") is None
    start = len(lowered.source) - len(kernels_of(lowered.source))
    places = list(ORDERING.finditer(lowered.source, start))
    assert bool(places) == ("__shared__" in lowered.source)
    for place in places:
        without = lowered.source[: place.start()] + "\n;" + lowered.source[place.end() :]
        found = judge(msgspec.structs.replace(lowered, source=without), problem, "integers")
        assert found is not None, place.group()
        assert found.kind not in ("compile", "crash"), (place.group(), found)


@pytest.mark.parametrize("structure", CONTRACTIONS)
def test_what_the_laws_refuse_is_found(structure: str) -> None:
    problem = _problem("matmul_bias_relu", DEEP)
    assert problem is not None
    found: list[tuple[str, Fault | None]] = []
    program = _default(problem, structure)
    assert isinstance(program, Program)
    for mutant in mutants(program):
        if mutant.kind == "index":
            continue  # many change nothing that can be seen: lowering takes the shorter side
        assert laws.verify(mutant.program, H200)
        found.append((mutant.kind, judge(_lowered(problem, mutant.program), problem, "integers")))
    assert all(fault is not None for kind, fault in found if kind != "where")
    outside = [fault.kind for kind, fault in found if kind == "where" and fault is not None]
    assert "out of bounds" in outside
    # A load past a row is still inside the matrix, and its products are dropped: only the last row needs that `where`.
    assert len(outside) >= 0.75 * sum(kind == "where" for kind, _ in found)


@pytest.mark.parametrize("structure", CONTRACTIONS)
def test_a_ring_made_one_buffer_is_a_race(structure: str) -> None:
    problem = _problem("matmul_bias_relu", DEEP)
    assert problem is not None
    written = ir.text_of(_default(problem, structure))
    if " ring" not in written:
        return
    for name in re.findall(r"shared (\w+): f32\[\w+, .* ring\n", written):
        single = text.parse(re.sub(rf"(shared {name}: f32\[)\w+,", r"\g<1>1,", written))
        found = judge(_lowered(problem, single), problem, "integers")
        assert found is not None
        assert found.kind == "race"
        assert name in found.where
