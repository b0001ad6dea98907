"""Runs lowered CUDA kernels on the CPU: threads as fibres, barriers, asynchronous copies, every access checked.

`emulate` gives the outputs or the first Fault: an access out of bounds or misaligned, a read of what nobody wrote,
two accesses of different threads that nothing orders, a deadlock, a barrier that is misused.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cake_tui.model.lowered import Launch, LaunchPlan, Lowered
from cake_tui.model.problem import Shape
from tests.emulator.compiling import CompileError, library, lines_of, machine
from tests.emulator.source import kernels_of, rewrite

Array = npt.NDArray[np.generic]
TIME_LIMIT_S = 30.0
_PLACE = re.compile(r"\{([0-9a-f]+)\}")


@dataclass(frozen=True)
class Fault:
    """What is wrong with a kernel, and where: the buffer and element, the threads, the lines of the source."""

    kind: str
    where: str


def emulate(
    lowered: Lowered,
    shape: Shape,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    seed: int = 1,
    time_limit_s: float = TIME_LIMIT_S,
) -> dict[str, Array] | Fault:
    """Run the launches of a lowered value's plan for one shape; return the outputs, or the first fault.

    `outputs` gives shape and dtype of what is written; a buffer that is in both is read too. `seed` draws the order
    in which threads and blocks run and copies arrive.
    """
    plan = lowered.plan(shape)
    entries = dict.fromkeys(launch.entry for launch in plan.launches)
    try:
        made = library(rewrite(lowered.source, entries))
    except CompileError as error:
        return Fault("compile", str(error))
    told = _told(plan, inputs, outputs, seed, _cell(lowered.source))
    try:
        done = subprocess.run(
            [str(machine()), str(made)], input=told, capture_output=True, check=False, timeout=time_limit_s
        )
    except subprocess.TimeoutExpired:
        return Fault("time", f"more than {time_limit_s:g} s")
    head, _, rest = done.stdout.partition(b"\n")
    if head == b"fault":
        kind, _, text = rest.decode(errors="replace").strip().partition("\n")
        return Fault(kind, _with_lines(text, made, lowered.source))
    if head != b"done" or done.returncode:
        return Fault(
            "crash", f"the emulator ended with {done.returncode}: {done.stderr.decode(errors='replace')[:500]}"
        )
    found = {}
    for name, array in outputs.items():
        found[name] = np.frombuffer(rest[: array.nbytes], array.dtype).reshape(array.shape).copy()
        rest = rest[array.nbytes :]
    return found


def _told(plan: LaunchPlan, inputs: Mapping[str, Array], outputs: Mapping[str, Array], seed: int, cell: int) -> bytes:
    """Return what the emulator reads: lines that describe buffers and launches, then the contents of the inputs."""
    arrays = {**outputs, **inputs}
    # Outputs come first, in their order, so that what is written back is found again.
    names = [*outputs, *(name for name in inputs if name not in outputs)]
    lines = [f"seed {seed}", f"cell {cell}"]
    for name in names:
        array = arrays[name]
        lines.append(f"buffer {name} {array.nbytes} {array.itemsize} 16 {int(name in inputs)} {int(name in outputs)}")
    for space in plan.workspaces:
        names.append(space.name)
        lines.append(f"buffer {space.name} {space.size_bytes} 4 {space.align_bytes} 0 1")
    for launch in plan.launches:
        numbers = (*launch.grid, *launch.block, *launch.cluster, launch.smem_bytes)
        lines.append(" ".join(("launch", launch.entry, *map(str, numbers))))
        lines += _arguments(launch, plan.shape, names, arrays)
    data = b"".join(np.ascontiguousarray(inputs[name]).tobytes() for name in names if name in inputs)
    return "\n".join([*lines, "data", ""]).encode() + data


def _arguments(launch: Launch, shape: Shape, names: list[str], arrays: Mapping[str, Array]) -> Iterator[str]:
    maps = {tensor_map.name: tensor_map for tensor_map in launch.tensor_maps}
    for argument in launch.arguments:
        if argument.kind == "size":
            yield f"int {shape[argument.name]}"
        elif argument.kind == "tensor_map":
            found = maps[argument.name]
            size = arrays[found.buffer].itemsize
            numbers = (names.index(found.buffer), len(found.dims), size, found.swizzle_bytes, *found.dims)
            yield " ".join(map(str, ("map", *numbers, size, *found.strides_bytes, *found.box)))
        else:
            yield f"pointer {names.index(argument.name)}"


def _cell(source: str) -> int:
    """Return the power of two of the bytes that are told apart: 1 where elements may be narrower than 4 bytes."""
    return 0 if re.search(r"\b(bool|char|short|bf16|f16)\b", kernels_of(source)) else 2


def _with_lines(text: str, made: Path, source: str) -> str:
    """Put lines of the source where a report has addresses."""
    lines = lines_of(made, dict.fromkeys(_PLACE.findall(text)))
    # A user's own file begins its lines again behind the macros in front of it.
    written = source.rpartition('#line 1 "kernel.cu"\n')[2].splitlines()

    def line(found: re.Match[str]) -> str:
        number = lines.get(found.group(1), 0)
        return f"(line {number}: {written[number - 1].strip()})" if 0 < number <= len(written) else "(no line)"

    return _PLACE.sub(line, text)
