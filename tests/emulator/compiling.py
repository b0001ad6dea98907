"""Compiles the emulator's machine once and kernels against it; both are kept by hash in the temporary folder."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest

MACHINE = Path(__file__).parent / "machine"
FLAGS = ("-std=c++20", "-march=native")
# -O1 keeps what is in registers out of sight of the checks and compiles quickly; -g1 gives lines to the reports.
KERNEL_FLAGS = (
    *FLAGS, "-O1", "-g1", "-w", "-fsanitize=thread,bounds,alignment", "--param=tsan-instrument-func-entry-exit=0",
    "-fno-strict-aliasing", "-ftrivial-auto-var-init=pattern", "-fPIC", "-shared", "-nostdlib",
    f"-include{MACHINE / 'cuda.h'}",
)  # fmt: skip
MOST_KEPT = 400  # programs
OLDEST = 12  # the first g++ that gives variables without a value a recognisable one


@functools.cache
def missing() -> str:
    """Say what this machine lacks to emulate kernels; an empty string for nothing."""
    if shutil.which("g++") is None or "Free Software Foundation" not in _compiler():
        return "no g++ of GNU here: it finds every access of a kernel"
    version = subprocess.run(["g++", "-dumpversion"], capture_output=True, text=True, check=False, timeout=60).stdout
    if int(version.partition(".")[0]) < OLDEST:
        return f"g++ {version.strip()} is too old to emulate kernels; {OLDEST} is the oldest that can"
    if shutil.which("addr2line") is None:
        return "no addr2line here: it gives reports their lines"
    return ""


class CompileError(Exception):
    """A source that g++ refuses; the text is the compiler's first errors."""


@functools.cache
def machine() -> Path:
    """Return the program that loads and runs kernels, compiled where it is not there yet."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(MACHINE.iterdir()))
    made = _folder() / f"machine-{_hash([*FLAGS, *texts])}"
    flags = [*FLAGS, "-O2", "-ftree-vectorize", "-rdynamic", str(MACHINE / "all.cpp"), "-ldl"]
    with (_folder() / "machine.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other workers wait for it instead of compiling it too
        return made if made.is_file() else _compiled(flags, made)


def library(text: str) -> Path:
    """Return the shared object of a kernel's text, compiled where it is not there yet; raises CompileError."""
    made = _folder() / f"kernel-{_hash([machine().name, *KERNEL_FLAGS, text])}"
    if made.is_file():
        return made
    _forget_old()
    return _compiled([*KERNEL_FLAGS, "-xc++", "kernel.cu"], made, text)


def lines_of(made: Path, places: Iterable[str]) -> dict[str, int]:
    """Return the line of the source for each address (hexadecimal) that has one."""
    wanted = list(places)
    found: dict[str, int] = {}
    if not wanted:
        return found
    done = subprocess.run(
        # An address is where a call returns to: the line is that of the byte before.
        ["addr2line", "-i", "-a", "-e", str(made), *(hex(int(place, 16) - 1) for place in wanted)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    at = -1
    for line in done.stdout.splitlines():
        if line.startswith("0x"):
            at += 1
        elif "kernel.cu:" in line:  # callers come after what was inlined into them
            number = line.rpartition(":")[2].split()[0]
            if number.isdigit():
                found[wanted[at]] = int(number)
    return found


def _compiled(arguments: list[str], made: Path, text: str = "") -> Path:
    """Compile in a folder of its own, which holds `text` as kernel.cu, and rename into place."""
    with tempfile.TemporaryDirectory(dir=_folder()) as name:
        (Path(name) / "kernel.cu").write_text(text, encoding="utf-8")
        command = ["g++", *arguments, "-o", "made"]
        done = subprocess.run(command, cwd=name, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
            raise CompileError("\n".join(said[:5]))
        return (Path(name) / "made").replace(made)


@functools.cache
def _folder() -> Path:
    place = Path(tempfile.gettempdir()) / f"cake-tui-emulator-{os.getuid()}"
    place.mkdir(mode=0o700, exist_ok=True)
    if place.stat().st_uid != os.getuid():
        raise PermissionError(f"{place} belongs to somebody else")
    return place


def _forget_old() -> None:
    kept = sorted(_folder().glob("kernel-*"), key=_age)
    for path in kept[: max(0, len(kept) - MOST_KEPT)]:
        path.unlink(missing_ok=True)


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _hash(texts: Iterable[str]) -> str:
    made = hashlib.sha256(_compiler().encode())
    for text in texts:
        made.update(text.encode() + b"\0")
    return made.hexdigest()[:20]


@functools.cache
def _compiler() -> str:
    return subprocess.run(["g++", "--version"], capture_output=True, text=True, check=False, timeout=60).stdout


NEEDED = [pytest.mark.cc, pytest.mark.skipif(bool(missing()), reason=missing())]  # marks of tests that emulate
