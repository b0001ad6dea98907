"""Which part of the grid a block works on: a block a tile in some order, or persistent blocks that walk the tiles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from cake_tui.ir.expr import Binary, Expr, Number, evaluate_int
from cake_tui.ir.lower.cuda.frame import CudaFrame
from cake_tui.ir.program import Axis, Launch
from cake_tui.ir.refusal import refuse

MOST_YZ = 65535  # blocks along y and z


def declare_blocks(frame: CudaFrame, launch: Launch) -> None:
    """Set the grid's axes from the block's number; persistent blocks set them for each tile."""
    if launch.persistent is not None:
        return
    for place, axes in enumerate(_dimensions(frame, launch)):
        _decode(frame, launch, axes, f"blockIdx.{'xyz'[place]}")


@contextmanager
def open_tiles(frame: CudaFrame, launch: Launch) -> Iterator[CudaFrame]:
    """Open the loop over the tiles of a persistent block; nothing for a block that has one tile."""
    if launch.persistent is None:
        yield frame
        return
    inner = frame.child()
    total = " * ".join(frame.c(axis.extent, 6) for axis in launch.axes) or "1"
    step = frame.c(launch.persistent)
    integer = frame.integer
    with frame.writer.block(f"for ({integer} tile = blockIdx.x; tile < {total}; tile += {step})"):
        inner.declare("tile", Number(0), _product(launch.axes))
        _decode(inner, launch, launch.axes, "tile")
        yield inner


def grid_of(launch: Launch, names: Mapping[str, int], flat: bool) -> tuple[int, int, int]:
    """Return the blocks along x, y and z for sizes; `flat` where all are along x. May raise EvaluationError."""
    if launch.persistent is not None:
        return evaluate_int(launch.persistent, names), 1, 1
    extents = [evaluate_int(axis.extent, names) for axis in launch.axes]
    if flat:
        return math.prod(extents), 1, 1
    if launch.order == "grouped":
        extents = [*extents[:-2], math.prod(extents[-2:])]
    if launch.order != "column":
        extents.reverse()
    x, y, z = [*extents, 1, 1, 1][:3]
    return x, y, z


def cluster_of(launch: Launch, names: Mapping[str, int]) -> tuple[int, int, int]:
    """Return the cluster's blocks along x, y and z."""
    counts = [evaluate_int(count, names) for count in launch.cluster]
    if launch.order != "column":
        counts.reverse()
    x, y, z = [*counts, 1, 1, 1][:3]
    return x, y, z


def is_flat(frame: CudaFrame, launch: Launch) -> bool:
    """Whether the grid has more axes, or more blocks along one, than y and z may have."""
    if launch.cluster or launch.persistent is not None:
        return False
    ordered = launch.axes if launch.order == "column" else launch.axes[::-1]
    behind = ordered[1:] if launch.order != "grouped" else ordered[2:]
    return len(behind) > 2 or any((frame.at_most(axis.extent) or MOST_YZ + 1) > MOST_YZ for axis in behind)


def _dimensions(frame: CudaFrame, launch: Launch) -> list[tuple[Axis, ...]]:
    """Return the axes that x, y and z stand for."""
    if launch.cluster and launch.order == "grouped":
        raise refuse("lowering", launch.name, "clusters in grouped order", "row or column", step="lower")
    if is_flat(frame, launch):
        return [launch.axes]
    if launch.order == "grouped":
        return [launch.axes[-2:], *[(axis,) for axis in launch.axes[-3::-1]]]
    ordered = launch.axes if launch.order == "column" else launch.axes[::-1]
    return [(axis,) for axis in ordered]


def _decode(frame: CudaFrame, launch: Launch, axes: tuple[Axis, ...], counter: str) -> None:
    """Take axes out of one number: a block's, or a tile's."""
    integer = frame.integer
    if len(axes) == 1:
        _set(frame, axes[0], counter)
        return
    if not axes:
        return
    name = counter
    if counter.startswith("blockIdx"):
        (name,) = frame.fresh("block")
        frame.writer.line(f"const {integer} {name} = {counter};")
    if launch.order == "grouped":
        _grouped(frame, launch, axes, name)
        return
    fastest_first = axes if launch.order == "column" else axes[::-1]
    behind: list[Axis] = []
    for axis in fastest_first:
        text = name if not behind else f"{name} / {_times(frame, behind)}"
        if axis is not fastest_first[-1]:
            text += f" % {frame.c(axis.extent, 6)}"
        _set(frame, axis, text)
        behind.append(axis)


def _grouped(frame: CudaFrame, launch: Launch, axes: tuple[Axis, ...], name: str) -> None:
    """Blocks of `group` rows of the last two axes run side by side, column after column."""
    if launch.group is None or len(axes) < 2:
        raise refuse("lowering", launch.name, "grouped order", "two axes and a group", step="lower")
    *leading, rows, columns = axes
    integer, c = frame.integer, frame.c
    if leading:
        plane = _times(frame, [rows, columns])
        text = f"{name} / {plane}"
        for place, axis in enumerate(reversed(leading)):
            _set(frame, axis, text if place == len(leading) - 1 else f"{text} % {c(axis.extent, 6)}")
            text = f"{text} / {c(axis.extent, 6)}"
        (within,) = frame.fresh("in_plane")
        frame.writer.line(f"const {integer} {within} = {name} % {plane};")
        name = within
    group, width = c(launch.group, 6), c(columns.extent, 6)
    first, side = frame.fresh("first_row", "rows")
    frame.writer.line(f"const {integer} {first} = {name} / ({group} * {width}) * {group};")
    frame.writer.line(f"const {integer} {side} = least({c(launch.group)}, {c(rows.extent)} - {first});")
    _set(frame, rows, f"{first} + {name} % ({group} * {width}) % {side}")
    _set(frame, columns, f"{name} % ({group} * {width}) / {side}")


def _set(frame: CudaFrame, axis: Axis, text: str) -> None:
    if frame.proofs.number(frame.tidy(axis.extent)) == 1:
        frame.replace(axis.name, Number(0))
        return
    frame.declare(axis.name, Number(0), axis.extent)
    frame.writer.line(f"const {frame.integer} {axis.name} = {text};")


def _times(frame: CudaFrame, axes: list[Axis]) -> str:
    text = " * ".join(frame.c(axis.extent, 6) for axis in axes)
    return f"({text})" if len(axes) > 1 else text


def _product(axes: tuple[Axis, ...]) -> Expr:
    total: Expr = Number(1)
    for axis in axes:
        total = axis.extent if total == Number(1) else Binary("*", total, axis.extent)
    return total
