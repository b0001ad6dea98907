"""Lowered CUDA programs compile for the architectures they ask for, without a register spilled."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cake_tui.errors import Ended
from tests.ir.cuda_programs import NAMES, lowered

NVCC = shutil.which("nvcc") or ""
pytestmark = pytest.mark.skipif(not NVCC, reason="no nvcc in PATH")
# nvcc takes most of a second each: what holds the most prelude functions is compiled always, the rest at full size.
_ALWAYS = ("persistent_gemm", "kmeans_roles", "softmax_two_pass", "topk_rows")


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
