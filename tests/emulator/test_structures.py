"""Every structure for cuda, rendered and run on the CPU: right at aligned and odd sizes, and no part of it is idle.

`--soak` runs twenty times as many knob combinations.
"""

from __future__ import annotations

import contextlib
import functools
import random
import re
from collections.abc import Mapping

import msgspec
import pytest

from cake_tui import ir, kernels
from cake_tui.errors import Ended
from cake_tui.ir import laws, text
from cake_tui.ir.program import Program
from cake_tui.model.lowered import Lowered
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Schedule
from tests.emulator import Fault
from tests.emulator.compiling import NEEDED
from tests.emulator.judging import judge
from tests.emulator.source import kernels_of
from tests.ir.devices import H200
from tests.ir.mutants import Mutant, mutants
from tests.ir.surgery import get

# By the name of a size, for kernels of any family; the last is for the others.
ALIGNED = {"M": 64, "N": 128, "K": 96, "R": 6, "C": 4096, "": 64}
ODD = {"M": 45, "N": 67, "K": 53, "R": 7, "C": 1003, "": 45}
DEEP = {"M": 37, "N": 52, "K": 248, "R": 5, "C": 2404, "": 52}  # several laps of every loop
FEW = {"M": 700, "N": 764, "K": 132, "": 64}  # a block of 64 x 64 for each multiprocessor
COMBINATIONS = 480
# A statement on a line of its own that orders or moves; what a condition in front of it guards goes with it.
ORDERING = re.compile(
    r"\n *(?:if \([^{}\n]*\)\n *)?"
    r"(?:__sync\w+|cp_async_\w+|barrier_\w+|named_barrier|cluster_sync|tma_\w+|fence_async\w+)"
    r"(?:<[^>\n]*>)?\([^;]*\);(?=\n)"
)

pytestmark = NEEDED


@functools.cache
def _names() -> dict[str, tuple[str, ...]]:
    """Return the packaged kernels for cuda and the names of their sizes."""
    found = {}
    for name in kernels.names():
        with contextlib.suppress(kernels.OtherTarget):
            found[name] = kernels.load(name, target="cuda").size_names
    return found


def _problem(kernel: str, sizes: Mapping[str, int]) -> Problem:
    """Return a packaged kernel at sizes that the emulator runs in no time."""
    shape = ",".join(f"{name}={sizes.get(name, sizes[''])}" for name in _names()[kernel])
    return kernels.load(kernel, target="cuda", shapes=[shape])


def _switches(kernel: str, structure: str) -> list[str]:
    """Return the knobs that make another program of a structure, each alone and all of them together."""
    knobs = ir.knobs(_problem(kernel, DEEP), structure, "cuda", H200)
    names = [knob.name for knob in knobs if isinstance(knob.default, bool) or knob.name in ("slice_k", "fragments")]
    return [*names, " ".join(names)] if len(names) > 1 else names


STRUCTURES = [
    (kernel, structure) for kernel in _names() for structure in ir.structures(_problem(kernel, ALIGNED), "cuda")
]
# The first kernel of each family stands for the others; a structure with a switch is two.
FIRST = {_problem(kernel, ALIGNED).family: kernel for kernel in reversed(_names())}
ONCE = [
    (kernel, structure, switched)
    for kernel, structure in STRUCTURES
    if kernel in FIRST.values()
    for switched in ("", *_switches(kernel, structure))
]


def _lowered(problem: Problem, program: Program | ir.Opaque) -> Lowered:
    return ir.lower(program, "cuda", H200.arch, problem.shapes)


def _default(problem: Problem, structure: str, switched: str = "", *, runtime: bool = False) -> Program | ir.Opaque:
    schedule = ir.default_schedule(problem, structure, "cuda", H200)
    knobs = {knob.name: knob for knob in ir.knobs(problem, structure, "cuda", H200)}
    for name in switched.split():
        other = next(value for value in knobs[name].values if value != schedule.knob(name))
        schedule = schedule.with_knobs({name: other})
    return ir.build(problem, schedule, "cuda", H200, runtime_sizes=runtime)


@pytest.mark.parametrize(("kernel", "structure"), STRUCTURES)
@pytest.mark.parametrize("sizes", [ALIGNED, ODD], ids=["aligned", "odd"])
def test_a_structure_is_right(kernel: str, structure: str, sizes: dict[str, int]) -> None:
    problem = _problem(kernel, sizes)
    for runtime in (False, True):
        lowered = _lowered(problem, _default(problem, structure, runtime=runtime))
        assert judge(lowered, problem, "integers", seed=2) is None
    assert judge(lowered, problem, "default", seed=3) is None


def test_groups_of_warps_are_right_where_they_are_the_default() -> None:
    problem = _problem("matmul_bias_relu", FEW)
    schedule = ir.default_schedule(problem, "warp_specialized", "cuda", H200)
    assert (schedule.knob("slice_k"), schedule.knob("tma")) == (2, True)
    assert judge(_lowered(problem, _default(problem, "warp_specialized")), problem, "integers", seed=2) is None


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
        sizes = {name: _size(draw, 4200 if name == "C" else 130) for name in (*_names()[kernel], "")}
        problem = _problem(kernel, sizes)
        knobs = {knob.name: draw.choice(knob.values) for knob in ir.knobs(problem, structure, "cuda", H200)}
        schedule = Schedule.of(structure, knobs)
        try:
            program = ir.build(problem, schedule, "cuda", H200, runtime_sizes=draw.random() < 0.5)
        except Ended:
            continue
        if not laws.verify(program, H200):
            return problem, schedule, program
    raise AssertionError(f"no legal knobs of {structure}")


def _size(draw: random.Random, most: int) -> int:
    return draw.choice((draw.randint(1, most), 4 * draw.randint(10, most // 4), 16 * draw.randint(3, most // 16)))


# --- what is taken out is missed ------------------------------------------------------------------------------


@pytest.mark.parametrize(("kernel", "structure", "switched"), ONCE)
def test_each_line_that_orders_or_copies_is_needed(kernel: str, structure: str, switched: str) -> None:
    problem = _problem(kernel, DEEP)
    lowered = _lowered(problem, _default(problem, structure, switched))
    assert judge(lowered, problem, "integers") is None
    start = len(lowered.source) - len(kernels_of(lowered.source))
    places = list(ORDERING.finditer(lowered.source, start))
    assert places or "_tile" not in lowered.source
    for place in places:
        without = lowered.source[: place.start()] + "\n;" + lowered.source[place.end() :]
        found = judge(msgspec.structs.replace(lowered, source=without), problem, "integers")
        assert found is not None, place.group()
        assert found.kind not in ("compile", "crash"), (place.group(), found)


@pytest.mark.parametrize(("kernel", "structure", "switched"), ONCE)
def test_what_the_laws_refuse_is_found(kernel: str, structure: str, switched: str) -> None:
    problem = _problem(kernel, DEEP)
    found: list[tuple[str, Fault | None]] = []
    program = _default(problem, structure, switched)
    assert isinstance(program, Program)
    for mutant in mutants(program):
        if mutant.kind == "index":
            continue  # many change nothing that can be seen: lowering takes the shorter side
        if mutant.kind == "where" and _is_box(mutant):
            continue  # the copy engine stays inside by itself
        assert laws.verify(mutant.program, H200)
        found.append((mutant.kind, judge(_lowered(problem, mutant.program), problem, "integers")))
    assert all(fault is not None for kind, fault in found if kind != "where")
    outside = [fault.kind for kind, fault in found if kind == "where" and fault is not None]
    assert "out of bounds" in outside
    # A load past a row is still inside the matrix, and its products are dropped: only the last row needs that `where`.
    assert len(outside) >= 0.75 * sum(kind == "where" for kind, _ in found)


def _is_box(mutant: Mutant) -> bool:
    (path,) = mutant.unprotected
    return getattr(get(mutant.program, path), "kind", "") == "tma_copy"


@pytest.mark.parametrize(("kernel", "structure", "switched"), ONCE)
def test_a_ring_made_one_buffer_is_a_race(kernel: str, structure: str, switched: str) -> None:
    problem = _problem(kernel, DEEP)
    written = ir.text_of(_default(problem, structure, switched))
    if " ring" not in written:
        return
    for name in re.findall(r"shared (\w+): f32\[\w+, .* ring\n", written):
        single = text.parse(re.sub(rf"(shared {name}: f32\[)\w+,", r"\g<1>1,", written))
        found = judge(_lowered(problem, single), problem, "integers")
        assert found is not None
        assert found.kind == "race"
        assert name in found.where


@pytest.mark.parametrize(("kernel", "structure", "switched"), ONCE)
def test_a_wrong_parity_is_found(kernel: str, structure: str, switched: str) -> None:
    problem = _problem(kernel, DEEP)
    lowered = _lowered(problem, _default(problem, structure, switched))
    for phase in re.finditer(r"(\w+_phase = )(0|~0u);", lowered.source):
        other = "~0u" if phase[2] == "0" else "0"
        wrong = f"{lowered.source[: phase.start()]}{phase[1]}{other};{lowered.source[phase.end() :]}"
        found = judge(msgspec.structs.replace(lowered, source=wrong), problem, "integers")
        assert found is not None
        assert found.kind in ("deadlock", "race", "uninitialised")
