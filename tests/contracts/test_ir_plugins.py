"""What every structure, edit and lowering keeps, whichever the registry finds: nothing here names one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from cake_tui import ir, kernels, registry
from cake_tui.errors import Ended
from cake_tui.ir import edits, laws, text
from cake_tui.ir.build import load
from cake_tui.ir.program import Program
from cake_tui.model.device import Device, Target
from cake_tui.model.outcome import Rejected
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import KnobValue, Schedule

SHARED_KNOBS = frozenset(
    {
        *("threads_x", "threads_y", "thread_m", "thread_n", "block_k", "vector", "unroll", "pad", "shared", "split_k"),
        *("stages", "loaders", "tma", "band", "slice_k", "fragments", "ptxas"),
    }
)
DEVICES: dict[Target, Device] = {
    "c": Device("cpu", "c", "cpu", "cpu:1", "x86-64-v4", 2, vector_bytes=64, vector_registers=32, l2_bytes=1 << 20),
    "cuda": Device(
        "cuda", "cuda", "gpu", "GPU-1", "sm_90a", 132, threads_per_block=1024, registers_per_thread=255,
        registers_per_sm=65536, smem_per_block_bytes=232448, smem_per_sm_bytes=233472, capability=90,
    ),
}  # fmt: skip
PACKAGE = Path(registry.__file__).parent
FAMILIES = sorted(path.name for path in (PACKAGE / "ir/build").iterdir() if (path / "__init__.py").is_file())
STRUCTURES = [
    (family, structure, target)
    for family in FAMILIES
    for structure in registry.names(f"ir/build/{family}")
    for target in load(family, structure).targets
]


def _problem(family: str, target: Target) -> Problem:
    for name in kernels.names():
        try:
            problem = kernels.load(name, target=target)
        except kernels.OtherTarget:
            continue
        if problem.family == family:
            return problem
    raise AssertionError(f"no shipped kernel of the family {family} to build structures with")


def test_there_is_something_to_look_at() -> None:
    assert "contraction" in FAMILIES
    assert len(STRUCTURES) >= 4
    assert len(edits.names()) >= 10
    assert "c" in registry.names("ir/lower")


@pytest.mark.parametrize(("family", "structure", "target"), STRUCTURES)
def test_a_structure_declares_shared_knobs_with_legal_defaults(family: str, structure: str, target: Target) -> None:
    problem = _problem(family, target)
    knobs = ir.knobs(problem, structure, target, DEVICES[target])
    assert len({knob.name for knob in knobs}) == len(knobs)
    for knob in knobs:
        assert knob.name in SHARED_KNOBS
        assert knob.default in knob.values
        assert len(set(knob.values)) == len(knob.values) >= 2
    assert registry.docstring(f"ir/build/{family}", structure)


@pytest.mark.parametrize(("family", "structure", "target"), STRUCTURES)
@pytest.mark.parametrize("runtime", [False, True])
def test_a_structures_defaults_build_pass_the_laws_and_lower(
    family: str, structure: str, target: Target, runtime: bool
) -> None:
    problem, device = _problem(family, target), DEVICES[target]
    schedule = ir.default_schedule(problem, structure, target, device)
    program = ir.build(problem, schedule, target, device, runtime_sizes=runtime)
    assert isinstance(program, Program)
    assert text.parse(text.render(program)) == program
    assert program.structure == structure
    assert laws.verify(program, device) == ()
    assert ir.build(problem, schedule, target, device, runtime_sizes=runtime) == program
    lowered = ir.lower(program, target, device.arch, problem.shapes)
    assert lowered.structure == structure
    assert set(dict(lowered.constants)) <= {name for name, _ in schedule.knobs}
    multiples = ir.multiples(problem, schedule, target, device)
    assert set(multiples) == set(problem.size_names)


@pytest.mark.parametrize(("family", "structure", "target"), STRUCTURES)
def test_only_its_own_file_knows_a_structure(family: str, structure: str, target: Target) -> None:
    # Edits may name the structure that they lead to; everything else reads it from the schedule.
    own = PACKAGE / f"ir/build/{family}/{structure}.py"
    for file in (PACKAGE / "ir").rglob("*.py"):
        # Families may have structures of the same name.
        if file.name == own.name or file.parent.name == "edits" or structure in SHARED_KNOBS:
            continue
        words = {node.value for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Constant)}
        if structure == "naive" and file == PACKAGE / "ir/build/__init__.py":
            continue  # the baseline comes first
        assert structure not in words, file


@pytest.mark.parametrize("edit", edits.names())
def test_an_edit_says_before_and_after_and_rewrites_or_refuses(edit: str) -> None:
    assert "→" in registry.docstring(edits.PLACE, edit)
    plugin = edits.load(edit)
    assert "→" in (plugin.rewrite.__doc__ or "")
    for family, structure, target in STRUCTURES:
        problem, device = _problem(family, target), DEVICES[target]
        schedule = ir.default_schedule(problem, structure, target, device)
        kept = Schedule(schedule.structure, schedule.knobs)
        for value in (2, 64, True, "nothing"):
            arguments: dict[str, KnobValue] = dict.fromkeys(plugin.parameters, value)
            try:
                after = ir.apply(problem, schedule, edit, arguments, target, device)
            except Ended as ended:
                _names_what_forbids_it(ended)
            else:
                assert after != schedule
                ir.knobs(problem, after.structure, target, device)
            assert schedule == kept


def _names_what_forbids_it(ended: Ended) -> None:
    assert isinstance(ended.outcome, Rejected)
    (found,) = ended.outcome.diagnostics
    assert found.field
    assert found.needed
    assert ended.outcome.reason
