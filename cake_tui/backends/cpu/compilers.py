"""Finds a C compiler, asks it for its version and names the commands that make kernels and the runtime."""

from __future__ import annotations

import functools
import importlib.util
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from cake_tui.backends.cpu.device import X86_LEVELS
from cake_tui.config import child_environment, environment
from cake_tui.errors import ENVIRONMENT, UserError, first_error
from cake_tui.model.device import Device

CURE = "install gcc or clang (Debian: apt install gcc), or `pip install ziglang`, or set CC"
TRIFLE = "void trifle(const int task[3], float *y) { y[task[0]] = y[task[0]] * 2.0f + 1.0f; }\n"


def find_compiler() -> tuple[str, ...]:
    """Return the compiler's command: ``$CC``, cc, gcc, clang or Zig's; raises UserError (ENVIRONMENT)."""
    chosen = environment("CC")
    if chosen:
        try:
            words = tuple(shlex.split(chosen))
        except ValueError as error:
            raise UserError(f"CC={chosen!r}: {error}; set CC to a compiler's command", ENVIRONMENT) from None
        if not words or shutil.which(words[0]) is None:
            raise UserError(f"CC={chosen!r}: no such command; {CURE.replace('or set CC', 'or unset CC')}", ENVIRONMENT)
        return words
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return (name,)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    raise UserError(f"no C compiler (looked for CC, cc, gcc, clang, ziglang); {CURE}", ENVIRONMENT)


@functools.cache
def version(command: tuple[str, ...]) -> str:
    """Return the first line of the compiler's version text; raises UserError (ENVIRONMENT) where it has none."""
    try:
        done = subprocess.run(
            [*command, "--version"], capture_output=True, timeout=60, check=False, env=child_environment(LC_ALL="C"),
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"C compiler {shlex.join(command)}: {error}; {CURE}", ENVIRONMENT) from None
    lines = done.stdout.decode(errors="replace").splitlines()
    if done.returncode or not lines:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise UserError(
            f"C compiler {shlex.join(command)}: --version ended with {done.returncode}"
            f"{': ' + said[0] if said else ''}; {CURE}", ENVIRONMENT,
        )  # fmt: skip
    return lines[0].strip()


def is_clang(command: tuple[str, ...]) -> bool:
    """Say whether the compiler speaks clang's options rather than gcc's."""
    return "clang" in version(command).lower() or "ziglang" in command


def architecture_options(command: tuple[str, ...], arch: str) -> tuple[str, ...]:
    """Return the options that ask for exactly `arch`; Zig spells its names with underscores."""
    if "ziglang" in command:
        return (f"-mcpu={arch.replace('-', '_')}",)
    wide = ("-mprefer-vector-width=512",) if arch == "x86-64-v4" else ()
    if arch == "native":
        return ("-mcpu=native",)
    return (f"-march={arch}", "-mtune=native", *wide)


def kernel_command(
    command: tuple[str, ...], arch: str, options: tuple[str, ...], source: Path, output: Path
) -> tuple[str, ...]:
    """Return the command for a kernel's shared object, with its assembly and vector report beside it."""
    level = () if any(option.startswith("-O") for option in options) else ("-O3",)
    report: tuple[str, ...] = ("-fopt-info-vec-missed=vector-report.txt",)
    if is_clang(command):
        report = ("-Rpass-missed=loop-vectorize",)
    standard = () if any(option.startswith("-std=") for option in options) else ("-std=gnu11",)
    return (
        *command, *standard, *level, *architecture_options(command, arch), *options, "-fPIC", "-shared",
        "-save-temps=obj", *report, "-o", str(output), str(source), "-lm",
    )  # fmt: skip


def runtime_command(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command for the evaluator's own C side, up to its output."""
    return (*command, "-std=gnu11", "-O2", "-fPIC", "-shared", "-pthread")


def rates_command(command: tuple[str, ...], arch: str, vector_bytes: int) -> tuple[str, ...]:
    """Return the command for what measures peak rates, up to its output: for the kernels' own architecture."""
    options = architecture_options(command, arch)
    fused = ("-ffp-contract=fast", f"-DVECTOR_BYTES={vector_bytes}")
    return (*command, "-std=gnu11", "-O3", *options, *fused, "-fPIC", "-shared")


def test_compile(command: tuple[str, ...], device: Device) -> None:
    """Compile a trifle for the device; raises UserError (ENVIRONMENT) with compiler, version and what it can do."""
    said = _try(command, device.arch)
    if said is None:
        return
    levels = [name for name, *_ in X86_LEVELS]
    below = levels[levels.index(device.arch) + 1 :] if device.arch in levels else []
    highest = next((arch for arch in below if _try(command, arch) is None), None)
    knows = f"the highest it makes is {highest}" if highest else "it makes no other either"
    raise UserError(
        f"C compiler {shlex.join(command)} ({version(command)}) makes no code for {device.arch}: {said}; "
        f"{knows}; {CURE}",
        ENVIRONMENT,
    )


def _try(command: tuple[str, ...], arch: str) -> str | None:
    """Compile the trifle; return None, or the compiler's first error."""
    with tempfile.TemporaryDirectory(prefix="cake-tui-probe-") as name:
        folder = Path(name)
        (folder / "trifle.c").write_text(TRIFLE, encoding="utf-8")
        argv = kernel_command(command, arch, (), Path("trifle.c"), Path("trifle.so"))
        try:
            done = subprocess.run(
                argv, cwd=folder, capture_output=True, timeout=60, check=False, env=child_environment(LC_ALL="C"),
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error).splitlines()[0]
        if done.returncode == 0 and (folder / "trifle.so").is_file():
            return None
        return first_error(done.stderr.decode(errors="replace"), 200) or f"it ended with {done.returncode}"
