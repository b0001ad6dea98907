"""Lowered CUDA programs compile for the architectures they ask for, without a register spilled."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cake_tui import ir
from cake_tui.errors import Ended
from cake_tui.ir.laws import verify
from tests.ir.contractions import matmul
from tests.ir.cuda_programs import NAMES, lowered
from tests.ir.devices import H200

NVCC = shutil.which("nvcc") or ("/usr/local/cuda/bin/nvcc" if Path("/usr/local/cuda/bin/nvcc").exists() else "")
pytestmark = pytest.mark.skipif(not NVCC, reason="no nvcc: its path is not in PATH")
# nvcc takes most of a second each: what holds the most prelude functions is compiled always, the rest at full size.
_ALWAYS = ("persistent_gemm", "kmeans_roles", "softmax_two_pass", "topk_rows")
_STRUCTURES = ("naive", "tiled", "pipelined", "split_k", "warp_specialized")
_ARCHITECTURES = ("sm_80", "sm_90a", "sm_100a")


def _compiled(source: str, options: tuple[str, ...], arch: str, folder: Path) -> str:
    file = folder / "kernel.cu"
    file.write_text(source, encoding="utf-8")
    command = [
        NVCC,
        *options,
        "-cubin",
        f"-arch={arch}",
        "-Xptxas",
        "-v",
        "-o",
        str(folder / "kernel.cubin"),
        str(file),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stderr


def _no_spills(log: str) -> None:
    # ptxas may put one address aside, outside of the loops, to fit one more block on a multiprocessor.
    assert max(int(count) for count in re.findall(r"(\d+) bytes spill", log)) <= 4, log


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in _ALWAYS else [pytest.mark.soak]) for name in NAMES]
)
def test_a_program_compiles_for_its_architecture(name: str, tmp_path: Path) -> None:
    try:
        made = lowered(name)
    except Ended as ended:
        pytest.skip(str(ended))
    _no_spills(_compiled(made.source, made.options, made.arch, tmp_path))


@pytest.mark.soak
@pytest.mark.parametrize("arch", _ARCHITECTURES)
@pytest.mark.parametrize("build", ["full", "smoke"])
@pytest.mark.parametrize("structure", _STRUCTURES)
def test_a_structure_compiles_for_every_architecture(structure: str, build: str, arch: str, tmp_path: Path) -> None:
    problem = matmul(1024, 1024, 1024)
    schedule = ir.default_schedule(problem, structure, "cuda", H200)
    program = ir.build(problem, schedule, "cuda", H200, runtime_sizes=build == "smoke")
    assert not verify(program, H200)
    made = ir.lower(program, "cuda", arch, problem.shapes)
    _no_spills(_compiled(made.source, made.options, arch, tmp_path))
