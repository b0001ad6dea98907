"""Threads of a block, extents of the grid and clusters stay within what the device can launch."""

from __future__ import annotations

import math
from collections.abc import Iterator

from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.model.diagnostic import Diagnostic

NAME = "launch-limits"
THREADS = 1024
GRID = (2**31 - 1, 65535, 65535)  # x, y, z: CUDA's limits on every architecture
CLUSTER = 8  # the portable size; larger ones need an attribute that not every device grants


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield launches outside of the limits, with the figures."""
    if subject.program.target != "cuda":
        return
    for index, launch in enumerate(subject.program.launches):
        threads = subject.threads(launch)
        stated = subject.device.threads_per_block if subject.device is not None else 0
        available = stated or THREADS
        if threads > available:
            yield _over(subject, index, "threads", "threads_per_block", threads, available, "threads")
        blocks = subject.blocks(launch)
        if launch.persistent is not None:
            blocks = (subject.number(launch.persistent),)
        if len(blocks) > len(GRID):
            yield _over(subject, index, "grid", "grid_axes", len(blocks), len(GRID), "axes")
        for axis, (extent, most) in enumerate(zip(reversed(blocks), GRID)):
            if extent > most:
                yield _over(subject, index, f"grid.{'xyz'[axis]}", f"grid_{'xyz'[axis]}", extent, most, "blocks")
        yield from _clusters(subject, index, blocks)


def _clusters(subject: Subject, index: int, blocks: tuple[int, ...]) -> Iterator[Diagnostic]:
    cluster = [subject.number(extent) for extent in subject.program.launches[index].cluster]
    size = math.prod(cluster)
    if size > CLUSTER:
        yield _over(subject, index, "cluster", "cluster_blocks", size, CLUSTER, "blocks")
    for extent, grid in zip(reversed(cluster), reversed(blocks)):
        if grid % extent:
            yield subject.refuse_launch(
                NAME,
                index,
                "cluster",
                f"clusters of {extent} in a grid of {grid}",
                f"a grid that {extent} divides",
                limit="cluster_divides",
                asked=float(extent),
                available=float(grid),
                unit="blocks",
            )


def _over(subject: Subject, index: int, field: str, limit: str, asked: int, available: int, unit: str) -> Diagnostic:
    return subject.refuse_launch(
        NAME,
        index,
        field,
        f"{asked} {unit}",
        f"at most {available}",
        nearest=str(available),
        limit=limit,
        asked=float(asked),
        available=float(available),
        unit=unit,
    )


PLUGIN: Law = Law(NAME, check)
