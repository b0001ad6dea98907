"""The standalone CUDA file: it reads back, compiles as it is, and on a GPU checks and times itself."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from cake_tui import ir, kernels
from cake_tui.errors import UserError
from cake_tui.exporters import Bundle
from cake_tui.exporters._standalone import BEGIN, END
from cake_tui.exporters.c import PLUGIN as STANDALONE_C
from cake_tui.exporters.cuda import PLUGIN
from cake_tui.ir.text import parse
from tests.exporters.bundles import bundle, cuda_bundle, structures
from tests.ir.devices import H200

KERNELS = ("matmul_bias_relu", "row_sum", "bias_gelu")
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc here")


def compiled(text: str, made: Bundle, folder: Path) -> Path:
    source, program = folder / "export.cu", folder / "bench"
    source.write_text(text, encoding="utf-8")
    command = PLUGIN.command(made, ("nvcc", "-Werror", "all-warnings"), str(source), str(program))
    done = subprocess.run(command or (), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.parametrize(("kernel", "structure"), [pair for kernel in KERNELS for pair in structures(kernel, H200)])
def test_reading_gives_back_what_was_written(kernel: str, structure: str) -> None:
    made = cuda_bundle(structure, kernel)
    assert PLUGIN.read(PLUGIN.write(made)) == made


def test_it_says_how_to_run_it_in_its_first_lines() -> None:
    made = cuda_bundle()
    head = PLUGIN.write(made).splitlines()[:12]
    run = "nvcc -O3 -gencode arch=compute_90a,code=sm_90a -std=c++17 FILE.cu -o bench && ./bench"
    assert f"// run: {run}" in head
    assert any("NVIDIA" in line or made.device.name in line for line in head)


@needs_nvcc
def test_the_level_of_ptxas_goes_along(tmp_path: Path) -> None:
    made = cuda_bundle("warp_specialized", knobs={"ptxas": 1})
    written = PLUGIN.write(made)
    run = next(line for line in written.splitlines() if line.startswith("// run: "))
    assert " --ptxas-options=-O1 " in run
    assert PLUGIN.read(written) == made
    assert compiled(written, made, tmp_path).is_file()


def test_a_kernel_of_the_other_target_is_refused_in_one_line() -> None:
    for exporter, other in ((PLUGIN, bundle()), (STANDALONE_C, cuda_bundle())):
        with pytest.raises(UserError, match="candidate 12 is for") as caught:
            exporter.write(other)
        assert "\n" not in str(caught.value)


@needs_nvcc
@pytest.mark.parametrize(
    ("arch", "kernel", "structure"),
    [
        ("sm_80", "bias_gelu", "vectorized"),
        ("sm_90a", "matmul_bias_relu", "split_k"),
        ("sm_100a", "row_sum", "split_rows"),
    ],
)
def test_the_file_alone_compiles_without_a_warning(arch: str, kernel: str, structure: str, tmp_path: Path) -> None:
    """Two of them have two launches and a workspace; the other structures compile in the test on a GPU."""
    made = cuda_bundle(structure, kernel, arch)
    assert compiled(PLUGIN.write(made), made, tmp_path).is_file()


@needs_nvcc
@pytest.mark.cuda
@pytest.mark.parametrize(
    ("kernel", "structure"),
    [pair for kernel in KERNELS for pair in structures(kernel, H200)],
)
def test_the_file_alone_checks_and_times_itself(kernel: str, structure: str, tmp_path: Path) -> None:
    made = cuda_bundle(structure, kernel)
    text = PLUGIN.write(made)
    done = subprocess.run([compiled(text, made, tmp_path)], capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    rows = {"matmul_bias_relu": 190, "row_sum": 37, "bias_gelu": 45}[kernel]
    assert (done.returncode, found["passed"], found["checked_rows"]) == (0, True, rows)
    assert 0 < found["max_abs_err"] < 5e-5
    assert 0 < found["fastest_us"] <= found["time_us"]


@needs_nvcc
@pytest.mark.cuda
def test_the_harness_finds_a_wrong_kernel(tmp_path: Path) -> None:
    made = cuda_bundle("tiled")
    text = PLUGIN.write(made)
    begin, end = text.index(BEGIN), text.index(END)
    kernel = text[begin:end]
    at = kernel.rfind("+=")
    wrong = text[:begin] + kernel[:at] + "-=" + kernel[at + 2 :] + text[end:]
    done = subprocess.run([compiled(wrong, made, tmp_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, json.loads(done.stdout)["passed"]) == (7, False)


@needs_nvcc
def test_tensor_maps_are_encoded_as_the_plan_has_them(tmp_path: Path) -> None:
    """The copy engine's ring: a 128 x 16 box of a (row of K), a 16 x 128 box of b, innermost axis first."""
    program = parse((Path(__file__).parents[1] / "programs" / "tma_ring.cake").read_text(encoding="utf-8"))
    problem = kernels.load("matmul_bias_relu", target="cuda")
    lowered = ir.lower(program, "cuda", "sm_90a", problem.shapes)
    made = cuda_bundle(lowered=lowered)
    made = msgspec.structs.replace(made, problem=problem)
    text = PLUGIN.write(made)
    assert "dims[] = {1024, 1024}, strides[] = {4096};" in text
    assert "box[] = {16, 128};" in text
    assert "box[] = {128, 16};" in text
    assert "CU_TENSOR_MAP_SWIZZLE_64B" in text
    assert compiled(text, made, tmp_path).is_file()
