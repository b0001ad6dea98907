"""Runs the blocks of a launch that stand for all of them, and says what the machine found in any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from cake_tui.ir.analysis.blocks import Block
from cake_tui.ir.analysis.boxes import Reach, Spans
from cake_tui.ir.analysis.corners import corners
from cake_tui.ir.analysis.intervals import span_of
from cake_tui.ir.analysis.seen import names_seen
from cake_tui.ir.analysis.steps import Clash
from cake_tui.ir.analysis.tiles import FEWEST_TILES, tiles_of
from cake_tui.ir.program import Buffer, Launch, Program
from cake_tui.ir.walk import walk_launch


def extents_of(launch: Launch, spans: Spans) -> tuple[int, ...]:
    """Return the grid's extents, outermost first; `spans` holds the sizes and constants that they name."""
    return tuple(max(1, span_of(axis.extent, spans)[1]) for axis in launch.axes)


def clashes_of(program: Program, index: int, first: int, spans: Spans) -> tuple[Clash, ...]:
    """Return what the machine finds in one launch, each pair of sites once.

    `first` is the site of its first statement, `spans` holds the program's sizes and constants.
    """
    launch = program.launches[index]
    names = names_seen(launch, program.buffers)
    known = tuple([(name, span) for name, span in spans.items() if name in names])
    late = any(size.value is None for size in program.sizes)
    return _clashes(launch, index, first, program.buffers, known, late)


@lru_cache(maxsize=128)
def _clashes(
    launch: Launch,
    index: int,
    first: int,
    buffers: tuple[Buffer, ...],
    known: tuple[tuple[str, Reach], ...],
    late: bool,
) -> tuple[Clash, ...]:
    spans = dict(known)
    sites = {path: first + at for at, (path, _) in enumerate(walk_launch(launch, index))}
    block = Block(launch, index, {buffer.name: buffer for buffer in buffers}, spans, sites)
    found: dict[tuple[str, int, int | None], Clash] = {}
    for places in _places(launch, spans, late):
        for clash in block.clashes(places):
            found.setdefault((clash.kind, clash.site, clash.other), clash)
    return tuple(found.values())


def _places(launch: Launch, spans: dict[str, Reach], late: bool) -> Iterator[Iterable[dict[str, Reach]]]:
    """Where each block that is run works: at one place of the grid, or a persistent one at its tiles in turn."""
    if launch.persistent is None:
        yield from ([corner] for corner in corners(launch, extents_of(launch, spans), spans))
        return
    for block in dict.fromkeys((0, max(1, span_of(launch.persistent, spans)[1]) - 1)):
        yield tiles_of(launch, block, spans, at_least=FEWEST_TILES if late else 1)
