"""Every structure for cuda is taken by the compiler, on three architectures; what one of them lacks is refused before.

`--soak` compiles twenty times as many knob combinations, and each for all three instead of for one in turn.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from cake_tui import ir, kernels
from cake_tui.errors import Ended
from cake_tui.ir import laws
from cake_tui.ir.program import Program
from cake_tui.model.device import Device
from cake_tui.model.outcome import Rejected
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Schedule
from tests.ir.devices import H200

ARCHITECTURES: dict[str, Device] = {
    "sm_80": msgspec.structs.replace(H200, arch="sm_80", capability=80, smem_per_block_bytes=166912, cores=108),
    "sm_90a": H200,
    "sm_100a": msgspec.structs.replace(H200, arch="sm_100a", capability=100, cores=148),
}
COMBINATIONS = 480
AT_ONCE = 48  # sources in one call of the compiler
LEAST_SHARE = 0.8
NVCC = shutil.which("nvcc")
KERNELS = ("matmul_bias_relu", "row_sum", "bias_gelu")
STRUCTURES = [
    (kernel, structure)
    for kernel in KERNELS
    for structure in ir.structures(kernels.load(kernel, target="cuda"), "cuda")
]


def _problem(kernel: str, sizes: Sequence[int]) -> Problem:
    names = kernels.load(kernel, target="cuda").size_names
    shape = ",".join(f"{name}={size}" for name, size in zip(names, sizes))
    return kernels.load(kernel, target="cuda", shapes=[shape])


def _source(problem: Problem, schedule: Schedule, device: Device, runtime: bool) -> str | None:
    """Render a schedule for a device; None where it or one of the laws refuses it with its reason."""
    try:
        program = ir.build(problem, schedule, "cuda", device, runtime_sizes=runtime)
    except Ended as ended:
        _says_why(ended)
        return None
    assert isinstance(program, Program)
    if laws.verify(program, device):
        return None
    return ir.lower(program, "cuda", device.arch, problem.shapes).source


def _says_why(ended: Ended) -> None:
    assert isinstance(ended.outcome, Rejected)
    assert ended.outcome.diagnostics[0].field


def _drawn(draw: random.Random, number: int) -> tuple[Problem, Schedule, bool]:
    """Draw sizes and knobs that an H200 takes."""
    kernel, structure = STRUCTURES[number % len(STRUCTURES)]
    sizes = draw.choice([(1024, 1024, 1024), (1021, 519, 77), (4096, 4096, 4096), (100, 52, 36)])
    problem = _problem(kernel, sizes)
    known = ir.knobs(problem, structure, "cuda", H200)
    while True:
        schedule = Schedule.of(structure, {knob.name: draw.choice(knob.values) for knob in known})
        runtime = draw.random() < 0.3
        if _source(problem, schedule, H200, runtime) is not None:
            return problem, schedule, runtime


def _compile(sources: dict[str, tuple[str, list[str]]], folder: Path) -> str:
    """Compile sources, each for its architectures, without optimising; return what the compiler says of errors."""
    said = []
    by_targets: dict[tuple[str, ...], list[str]] = {}
    for name, (source, arches) in sources.items():
        (folder / f"{name}.cu").write_text(source)
        by_targets.setdefault(tuple(arches), []).append(f"{name}.cu")
    for known, files in by_targets.items():
        targets = [f"-gencode=arch={arch.replace('sm', 'compute')},code={arch}" for arch in known]
        for start in range(0, len(files), AT_ONCE):
            command = [str(NVCC), "-fatbin", "-std=c++17", "-t", "2", *targets, "-Xptxas", "-O0", "-Xcicc", "-O0"]
            some = files[start : start + AT_ONCE]
            done = subprocess.run([*command, *some], cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                said.append(done.stdout + done.stderr)
    return "\n".join(said)


@pytest.mark.skipif(NVCC is None, reason="there is no nvcc")
def test_legal_knobs_compile_on_each_architecture(soak_share: float, tmp_path: Path) -> None:
    asked: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    sources: dict[str, tuple[str, list[str]]] = {}
    total = round(COMBINATIONS * soak_share)
    for number in range(total):
        problem, schedule, runtime = _drawn(random.Random(number), number)
        for arch in ARCHITECTURES if soak_share == 1 else [_in_turn(number)]:
            asked[arch] += 1
            source = _source(problem, schedule, ARCHITECTURES[arch], runtime)
            if source is None:
                continue
            taken[arch] += 1
            # The first line names the architecture; what is below is mostly the same for all of them.
            same = next((name for name, (text, _) in sources.items() if _body(text) == _body(source)), None)
            if same is None:
                sources[f"k{number}_{arch}"] = (source, [arch])
            else:
                sources[same][1].append(arch)
    assert not _compile(sources, tmp_path)
    print(f"\n{total} combinations: " + ", ".join(f"{arch} takes {taken[arch]}" for arch in ARCHITECTURES))
    assert all(taken[arch] >= LEAST_SHARE * asked[arch] > 0 for arch in ARCHITECTURES), (taken, asked)


def _in_turn(number: int) -> str:
    """Name an architecture: each comes as often, and a structure meets another one every time that it is drawn."""
    names = list(ARCHITECTURES)
    again, structure = divmod(number, len(STRUCTURES))
    return names[(structure + again) % len(names)]


def _body(source: str) -> str:
    return source.split("\n", 1)[1]


@pytest.mark.skipif(NVCC is None, reason="there is no nvcc")
def test_defaults_compile_at_aligned_and_odd_sizes(tmp_path: Path) -> None:
    sources = {}
    for number, (kernel, structure) in enumerate(STRUCTURES):
        problem = _problem(kernel, ((256, 512, 128), (45, 67, 53))[number % 2])
        schedule = ir.default_schedule(problem, structure, "cuda", H200)
        source = _source(problem, schedule, H200, number % 3 == 0)
        assert source is not None, structure
        sources[structure + kernel] = (source, ["sm_90a"])
    assert not _compile(sources, tmp_path)
    wrong = {"wrong": ('extern "C" __global__ void wrong() { nothing; }', ["sm_90a"])}
    assert 'identifier "nothing" is undefined' in _compile(wrong, tmp_path)


def test_what_an_architecture_lacks_is_refused() -> None:
    problem = _problem("matmul_bias_relu", (1024, 1024, 1024))
    bulk = ir.default_schedule(problem, "warp_specialized", "cuda", H200).with_knobs({"tma": True})
    assert _source(problem, bulk, H200, False) is not None
    assert _source(problem, bulk, ARCHITECTURES["sm_80"], False) is None
    large = {"stages": 6, "block_k": 32, "thread_m": 16, "thread_n": 8, "threads_x": 16, "threads_y": 8}
    ring = ir.default_schedule(problem, "pipelined", "cuda", H200).with_knobs(large)
    assert _source(problem, ring, H200, False) is not None
    assert _source(problem, ring, ARCHITECTURES["sm_80"], False) is None
