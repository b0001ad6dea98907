"""CUDA compilers: NVRTC through CuPy in a process of its own, or nvcc where ``CAKE_TUI_CUDA_COMPILER`` names it."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cake_tui.config import child_environment, cuda_compiler
from cake_tui.errors import ENVIRONMENT, UserError, first_error

NVRTC = Path(__file__).with_name("_nvrtc.py")
INSTALL = "pip install 'cake-tui[cuda13]' (or 'cake-tui[cuda12]' where nvidia-smi shows a CUDA version below 13)"
COMPILE_S = 120.0
TRIFLE = 'extern "C" __global__ void trifle(float *x) { x[threadIdx.x] += 1.0f; }\n'
REPORT = "--ptxas-options=-v"


def find_compiler() -> tuple[str, ...]:
    """Return the compiler's command; raises UserError (ENVIRONMENT) naming what is missing and how to get it."""
    wanted = cuda_compiler()
    if wanted == "nvrtc":
        if importlib.util.find_spec("cupy_backends") is None or importlib.util.find_spec("cupy") is None:
            raise UserError(f"CuPy is not installed; {INSTALL}", ENVIRONMENT)
        library = nvrtc_library()
        if library is None:
            return (sys.executable, "-P", str(NVRTC))
        return (sys.executable, "-I", "-S", str(NVRTC), "--library", library)
    found = shutil.which(wanted)
    if found is None:
        raise UserError(
            f"CAKE_TUI_CUDA_COMPILER: no {wanted} here; give the path of an nvcc, or unset it for NVRTC", ENVIRONMENT
        )
    return (found,)


@functools.lru_cache(maxsize=1)
def nvrtc_library() -> str | None:
    """Return the file of the NVRTC that CuPy uses, looked for in its order: NVIDIA's wheels, then a toolkit.

    None where it is elsewhere: CuPy's own bindings find it then, half a second later.
    """
    major = "12" if importlib.util.find_spec("cupy") and _installed("cupy-cuda12x") else "13"
    wheels = [Path(place) for place in _wheel_folders()]
    places = [
        *(place / f"cu{major}" / "lib" for place in wheels), *(place / "cuda_nvrtc" / "lib" for place in wheels),
        *(Path(root) / "lib64" for root in _roots()),
    ]  # fmt: skip
    found = (place / f"libnvrtc.so.{major}" for place in places)
    return next((str(path) for path in found if path.is_file()), None)


def is_nvcc(command: Sequence[str]) -> bool:
    """Say whether a command of `find_compiler` is nvcc's."""
    return str(NVRTC) not in command


@functools.lru_cache(maxsize=4)
def version(command: tuple[str, ...]) -> str:
    """Return the compiler's own words for its version; raises UserError (ENVIRONMENT) where it does not start."""
    try:
        done = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, errors="replace", timeout=COMPILE_S, check=False,
            env=child_environment(LC_ALL="C.UTF-8"),
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"{_named(command)} does not start: {error}", ENVIRONMENT) from None
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    if done.returncode or not lines:
        said = (done.stderr.strip().splitlines() or ["no words of it"])[-1]
        raise UserError(f"{_named(command)} does not start: {said}; {INSTALL}", ENVIRONMENT)
    return next((line for line in lines if "release" in line), lines[-1])


def kernel_command(
    command: Sequence[str], arch: str, options: Sequence[str], source: Path, output: Path, *, disassemble: bool = False
) -> tuple[str, ...]:
    """Return what compiles `source` into a cubin and prints ptxas' report."""
    includes = [f"-I{place}" for place in include_folders()]
    if is_nvcc(command):
        wanted = ["-cubin", f"-arch={arch}", REPORT, *options, *includes, "-o", str(output), str(source)]
        return (*command, *wanted)
    tool = disassembler() if disassemble else None
    extra = ("--disassembler", tool) if tool else ()
    return (
        *command, *extra, "--output", str(output), str(source), "--", f"--gpu-architecture={arch}", REPORT, *options,
        *includes,
    )  # fmt: skip


def test_compile(command: Sequence[str], arch: str) -> None:
    """Compile a trifle for an architecture; raises UserError (ENVIRONMENT) with the compiler's words."""
    with tempfile.TemporaryDirectory(prefix="cake-tui-cuda-") as scratch:
        compile_file(command, arch, TRIFLE, Path(scratch))


def compile_file(command: Sequence[str], arch: str, text: str, scratch: Path) -> bytes:
    """Compile one text in a folder of its own; raises UserError (ENVIRONMENT) with the compiler's words."""
    source, output = Path("kernel.cu"), Path("kernel.cubin")
    (scratch / source).write_text(text, encoding="utf-8")
    argv = kernel_command(command, arch, (), source, output)
    try:
        done = subprocess.run(
            argv, cwd=scratch, capture_output=True, text=True, errors="replace", timeout=COMPILE_S, check=False,
            env=child_environment(LC_ALL="C.UTF-8"),
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"{_named(command)} failed: {error}", ENVIRONMENT) from None
    if done.returncode or not (scratch / output).is_file():
        said = first_error(f"{done.stdout}\n{done.stderr}") or "no words of it"
        raise UserError(
            f"{_named(command)} ({version(tuple(command))}) cannot compile for {arch}: {said[:300]}; {INSTALL}",
            ENVIRONMENT,
        )
    return (scratch / output).read_bytes()


@functools.lru_cache(maxsize=1)
def disassembler() -> str | None:
    """Return nvdisasm's path, or None: beside nvcc, in the CUDA folder, or from NVIDIA's wheel."""
    places = [Path(root) / "bin" for root in _roots()]
    return shutil.which("nvdisasm") or next((found for place in places if (found := _which(place))), None)


@functools.lru_cache(maxsize=1)
def include_folders() -> tuple[str, ...]:
    """Return the folders that hold CUDA's own headers; generated kernels need none, a user's may."""
    return tuple(str(found) for root in _roots() if (found := Path(root) / "include").is_dir())[:1]


@functools.lru_cache(maxsize=1)
def _roots() -> tuple[str, ...]:
    """Return folders of CUDA's files: NVIDIA's wheels, then a toolkit."""
    wheels = [Path(place) / "cu13" for place in _wheel_folders()]
    nvcc = shutil.which("nvcc")
    toolkits = [Path("/usr/local/cuda"), *([Path(nvcc).resolve().parents[1]] if nvcc else [])]
    return tuple(str(place) for place in (*toolkits, *wheels) if place.is_dir())


def _wheel_folders() -> list[str]:
    spec = importlib.util.find_spec("nvidia")
    return list(spec.submodule_search_locations or []) if spec else []


def _installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _which(place: Path) -> str | None:
    return shutil.which("nvdisasm", path=str(place))


def _named(command: Sequence[str]) -> str:
    return command[0] if is_nvcc(command) else "NVRTC through CuPy"
