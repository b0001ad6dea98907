"""Contraction problems, devices, compiled launches and float64 answers for the tests of builders and lowering."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cake_tui.backends.cpu.compilers import find_compiler
from cake_tui.model.device import Device
from cake_tui.model.lowered import Lowered
from cake_tui.model.problem import BufferSpec, Problem, Shape

WIDE = Device("cpu", "c", "wide", "cpu:wide", "x86-64-v4", 2, vector_bytes=64, vector_registers=32, l2_bytes=1 << 20)
NARROW = Device("cpu", "c", "narrow", "cpu:narrow", "x86-64-v2", 2, vector_bytes=16, vector_registers=16)
UNIT = 2.0**-24
POISON = np.float32("nan")
_loaded: dict[str, ctypes.CDLL] = {}


def matmul(m: int, n: int, k: int, value: str = "relu(acc + bias[n])", **changes: object) -> Problem:
    """Make ``y = value(a @ b)`` with a bias of n elements."""
    buffers = (
        BufferSpec("a", "f32", ("M", "K")),
        BufferSpec("b", "f32", ("K", "N")),
        BufferSpec("bias", "f32", ("N",)),
        BufferSpec("y", "f32", ("M", "N"), role="out"),
    )
    shape = Shape((("M", m), ("N", n), ("K", k)))
    return Problem("matmul_bias", "contraction", value, buffers, (shape,), **changes)


def inputs(shape: Shape, seed: int = 0) -> dict[str, np.ndarray]:
    """Draw a, b and bias, and a poisoned y, each one element off any alignment beyond four bytes."""
    random = np.random.default_rng(seed)
    m, n, k = shape["M"], shape["N"], shape["K"]
    drawn = {
        "a": random.standard_normal((m, k)), "b": random.standard_normal((k, n)) / np.sqrt(k),
        "bias": random.standard_normal(n), "y": np.full((m, n), np.nan),
    }  # fmt: skip
    return {name: unaligned(values.astype(np.float32)) for name, values in drawn.items()}


def unaligned(values: np.ndarray) -> np.ndarray:
    """Copy an array to memory that is aligned to four bytes and no more."""
    room = np.empty(values.size + 33, values.dtype)
    start = next(at for at in range(1, 33) if (room.ctypes.data + 4 * at) % 64 == 4)
    placed = room[start : start + values.size].reshape(values.shape)
    placed[...] = values
    return placed


def compiled(lowered: Lowered, folder: Path) -> ctypes.CDLL:
    """Compile a lowered value into `folder` and load it; what this process compiled before serves again."""
    if lowered.sha256 in _loaded:
        return _loaded[lowered.sha256]
    source, library = folder / f"{lowered.sha256[:16]}.c", folder / f"{lowered.sha256[:16]}.so"
    source.write_text(lowered.source)
    command = [
        *find_compiler(),
        *lowered.options,
        "-Werror",
        "-fPIC",
        "-shared",
        str(source),
        "-o",
        str(library),
        "-lm",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + lowered.source
    return _loaded.setdefault(lowered.sha256, ctypes.CDLL(str(library)))


def run(lowered: Lowered, library: ctypes.CDLL, shape: Shape, buffers: Mapping[str, np.ndarray]) -> None:
    """Run every launch, task after task, the last task first: no order may matter."""
    plan = lowered.plan(shape)
    rooms = {space.name: np.full(space.size_bytes // 4 + 16, POISON, np.float32) for space in plan.workspaces}
    aligned = {name: room[(-room.ctypes.data % 64) // 4 :] for name, room in rooms.items()}
    for launch in plan.launches:
        entry = getattr(library, launch.entry)
        arguments: list[object] = []
        for argument in launch.arguments:
            if argument.kind == "size":
                arguments.append(ctypes.c_int(shape[argument.name]))
            else:
                place = buffers if argument.kind == "buffer" else aligned
                arguments.append(ctypes.c_void_p(place[argument.name].ctypes.data))
        for number in reversed(range(launch.grid[0] * launch.grid[1] * launch.grid[2])):
            x, rest = number % launch.grid[0], number // launch.grid[0]
            entry((ctypes.c_int * 3)(x, rest % launch.grid[1], rest // launch.grid[1]), *arguments)


def exact(buffers: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return a @ b + bias in float64 and the scale |a| |b| + |bias| of its rounding errors."""
    a, b, bias = (buffers[name].astype(np.float64) for name in ("a", "b", "bias"))
    return a @ b + bias, np.abs(a) @ np.abs(b) + np.abs(bias)
