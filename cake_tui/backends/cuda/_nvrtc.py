"""A process that compiles one CUDA file with NVRTC, through CuPy's bindings, and leaves a cubin; run as a script.

Nothing else is imported: CuPy itself would cost more than most compiles. Its output is the compiler's.
"""

from __future__ import annotations

import argparse
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

LOST_BYTES = 1
SASS_S = 30.0  # usually a tenth of a second to half a second


def bindings() -> Any:
    """Return CuPy's NVRTC bindings with the library loaded; raises whatever is wrong with the installation."""
    from cupy_backends.cuda.libs import nvrtc

    try:
        nvrtc.getVersion()
    except Exception:  # noqa: BLE001 - older CuPys find the library only after an import of the whole
        import cupy  # noqa: F401

        nvrtc.getVersion()
    return nvrtc


def main() -> int:
    """Compile; 0 where a cubin was written, 1 where the compiler refused it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", action="store_true", help="print the version alone")
    parser.add_argument("--disassembler", help="nvdisasm, whose text goes beside the cubin as kernel.sass")
    parser.add_argument("--output", type=Path)
    parser.add_argument("source", type=Path, nargs="?")
    parser.add_argument("options", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    nvrtc = bindings()
    if args.version:
        _say("NVRTC {}.{}".format(*nvrtc.getVersion()))
        return 0
    options = [option for option in args.options if option != "--"]
    program = nvrtc.createProgram(args.source.read_text(encoding="utf-8"), args.source.name, (), ())
    try:
        nvrtc.compileProgram(program, options)
    except nvrtc.NVRTCError as error:
        _say(nvrtc.getProgramLog(program) or f"error: {error}")
        return 1
    _say(nvrtc.getProgramLog(program))
    args.output.write_bytes(whole(nvrtc.getCUBIN(program)))
    if args.disassembler:
        _disassemble(args.disassembler, args.output)
    return 0


def whole(cubin: bytes) -> bytes:
    """Return the cubin with the zeros that its header promises: the bindings take its last byte for a terminator."""
    (programs_at, sections_at) = struct.unpack_from("<QQ", cubin, 32)
    program_size, programs, section_size, sections = struct.unpack_from("<HHHH", cubin, 54)
    end = max(programs_at + program_size * programs, sections_at + section_size * sections)
    return cubin.ljust(end, b"\0") if end - len(cubin) <= LOST_BYTES else cubin


def _say(text: str) -> None:
    sys.stdout.write(text.rstrip("\0\n") + "\n" if text.strip("\0\n ") else "")
    sys.stdout.flush()


def _disassemble(tool: str, cubin: Path) -> None:
    """Leave the instructions as text; without them a build is as good."""
    with cubin.with_suffix(".sass").open("wb") as file:
        try:
            command = [tool, "-c", str(cubin)]
            subprocess.run(command, stdout=file, stderr=subprocess.DEVNULL, timeout=SASS_S, check=False)
        except (OSError, subprocess.TimeoutExpired):
            file.truncate(0)


if __name__ == "__main__":
    sys.exit(main())
