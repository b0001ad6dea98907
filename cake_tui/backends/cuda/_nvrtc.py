"""A process that compiles one CUDA file with NVRTC and leaves a cubin: a script that needs the standard library alone.

The library is given, or it is the one of CuPy's bindings: to import those costs more than most compiles. What it
prints is the compiler's.
"""

from __future__ import annotations

import argparse
import ctypes
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LOST_BYTES = 1
SASS_S = 30.0  # usually a few tenths of a second


class Library:
    """NVRTC itself, through ctypes."""

    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(path)
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p

    def version(self) -> tuple[int, int]:
        """Return major and minor."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def compile(self, source: bytes, name: str, options: Sequence[str]) -> tuple[bytes | None, str]:
        """Return the cubin, None where the compiler refuses, and what it said."""
        program = ctypes.c_void_p()
        code = self._library.nvrtcCreateProgram(ctypes.byref(program), source, name.encode(), 0, None, None)
        if code:
            return None, self._error(code)
        words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        code = self._library.nvrtcCompileProgram(program, len(options), words)
        log = self._text("nvrtcGetProgramLog", program).rstrip(b"\0").decode(errors="replace")
        if code:
            return None, log if log.strip() else self._error(code)
        return self._text("nvrtcGetCUBIN", program), log

    def _text(self, name: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        if getattr(self._library, f"{name}Size")(program, ctypes.byref(size)):
            return b""
        room = ctypes.create_string_buffer(max(size.value, 1))
        getattr(self._library, name)(program, room)
        return room.raw[: size.value]

    def _error(self, code: int) -> str:
        words = self._library.nvrtcGetErrorString(code) or b"unknown"
        return f"error: {words.decode(errors='replace')}"


class Bindings:
    """NVRTC through CuPy's bindings."""

    def __init__(self) -> None:
        from cupy_backends.cuda.libs import nvrtc

        self._nvrtc: Any = nvrtc

    def version(self) -> tuple[int, int]:
        """Return major and minor."""
        major, minor = self._nvrtc.getVersion()
        return int(major), int(minor)

    def compile(self, source: bytes, name: str, options: Sequence[str]) -> tuple[bytes | None, str]:
        """Return the cubin, None where the compiler refuses, and what it said."""
        program = self._nvrtc.createProgram(source.decode(), name, (), ())
        try:
            self._nvrtc.compileProgram(program, tuple(options))
        except self._nvrtc.NVRTCError as error:
            return None, self._nvrtc.getProgramLog(program) or f"error: {error}"
        return whole(self._nvrtc.getCUBIN(program)), self._nvrtc.getProgramLog(program)


def whole(cubin: bytes) -> bytes:
    """Return the cubin with the zeros that its header promises: CuPy takes its last byte for a terminator."""
    (programs_at, sections_at) = struct.unpack_from("<QQ", cubin, 32)
    program_size, programs, section_size, sections = struct.unpack_from("<HHHH", cubin, 54)
    end = max(programs_at + program_size * programs, sections_at + section_size * sections)
    return cubin.ljust(end, b"\0") if end - len(cubin) <= LOST_BYTES else cubin


def main() -> int:
    """Compile; 0 where a cubin was written, 1 where the compiler refused it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", help="NVRTC's file; without it CuPy's bindings are used")
    parser.add_argument("--version", action="store_true", help="print the version alone")
    parser.add_argument("--disassembler", help="nvdisasm, whose text goes beside the cubin as kernel.sass")
    parser.add_argument("--output", type=Path)
    parser.add_argument("source", type=Path, nargs="?")
    parser.add_argument("options", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    nvrtc: Library | Bindings = Library(args.library) if args.library else Bindings()
    if args.version:
        _say("NVRTC {}.{}".format(*nvrtc.version()))
        return 0
    options = [option for option in args.options if option != "--"]
    cubin, log = nvrtc.compile(args.source.read_bytes(), args.source.name, options)
    _say(log)
    if cubin is None:
        return 1
    args.output.write_bytes(cubin)
    if args.disassembler:
        _disassemble(args.disassembler, args.output)
    return 0


def _say(text: str) -> None:
    sys.stdout.write(text.rstrip("\0\n") + "\n" if text.strip("\0\n ") else "")
    sys.stdout.flush()


def _disassemble(tool: str, cubin: Path) -> None:
    """Leave the instructions as text; without them a build is as good."""
    with cubin.with_suffix(".sass").open("wb") as file:
        try:
            command = [tool, "-c", "-ndf", str(cubin)]  # without the flow of data: half the time
            subprocess.run(command, stdout=file, stderr=subprocess.DEVNULL, timeout=SASS_S, check=False)
        except (OSError, subprocess.TimeoutExpired):
            file.truncate(0)


if __name__ == "__main__":
    sys.exit(main())
