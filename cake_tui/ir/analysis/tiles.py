"""Which tiles of the grid a persistent block works on, one behind the other."""

from __future__ import annotations

import math
from collections.abc import Iterator

from cake_tui.ir.analysis.boxes import Reach, Spans
from cake_tui.ir.analysis.intervals import span_of
from cake_tui.ir.program import Launch

MOST_TILES = 24  # of one block; those behind are taken to be as these are
FEWEST_TILES = 3  # where sizes come at run time: the next tile, and the one behind it, whatever the sample has


def tiles_of(launch: Launch, block: int, spans: Spans, *, at_least: int = 1) -> Iterator[dict[str, Reach]]:
    """Yield the grid axes' values at each tile of a persistent block, the first over again to make `at_least`."""
    assert launch.persistent is not None  # the caller asked
    extents = [max(1, span_of(axis.extent, spans)[1]) for axis in launch.axes]
    step = max(1, span_of(launch.persistent, spans)[1])
    group = span_of(launch.group, spans)[1] if launch.group is not None else 1
    total = math.prod(extents)
    count = len(range(block, total, step))
    for at in range(min(max(count, at_least), MOST_TILES)):
        place = place_of(launch.order, max(1, group), extents, block + at % max(1, count) * step)
        yield {axis.name: (value, value) for axis, value in zip(launch.axes, place)}


def place_of(order: str, group: int, extents: list[int], tile: int) -> list[int]:
    """Return the tile's coordinates, outermost axis first."""
    if order == "grouped" and len(extents) > 1:
        *leading, rows, columns = extents
        plane, within = divmod(tile, rows * columns)
        first = within // (group * columns) * group
        side = min(group, rows - first)
        last = [first + within % (group * columns) % side, within % (group * columns) // side]
        return [*place_of("row", 1, leading, plane), *last]
    place = []
    for extent in extents if order == "column" else reversed(extents):
        tile, at = divmod(tile, extent)
        place.append(at)
    return place if order == "column" else place[::-1]
