"""Bytes that move into a cache while a nest runs: footprints of loops against the cache's capacity.

A loop whose whole footprint fits brings each line in once. One whose single round fits keeps what successive rounds
share. Otherwise every round brings its lines in again. (Footprint analysis as for tiled loops: Wolf and Lam 1991.)
"""

from __future__ import annotations

from collections.abc import Sequence

from cake_tui.ir.cost.nests import Use, Work

FILL = 0.75  # share of a cache that stays useful beside everything else that passes through


def moved_bytes(works: Sequence[Work], capacity: float, line_bytes: int) -> float:
    """Return bytes moved into a cache of so many bytes, over the whole launch; registers move nothing."""
    if not capacity:
        return sum(use.elements * use.element_bytes * work.runs for work in works for use in _memory(work))
    room = capacity * FILL
    total = 0.0
    for group in _groups(works):
        total += _group_bytes(group, room, line_bytes)
    return total


def _memory(work: Work) -> list[Use]:
    return [use for use in work.uses if use.buffer.space != "register" and use.lengths]


def _groups(works: Sequence[Work]) -> list[list[Work]]:
    """Statements that share their innermost loops are in the cache together."""
    found: dict[tuple[str, ...], list[Work]] = {}
    for work in works:
        if _memory(work):
            found.setdefault(tuple(loop.name for loop in work.loops), []).append(work)
    return list(found.values())


def _group_bytes(group: list[Work], room: float, line_bytes: int) -> float:
    loops = group[0].loops
    uses = [use for work in group for use in _memory(work)]
    inside: dict[str, float] = {}
    lines = [use.lines(inside, line_bytes) for use in uses]
    traffic = list(lines)
    for loop in reversed(loops):
        round_bytes = sum(lines) * line_bytes
        inside[loop.name] = loop.trips
        wider = [use.lines(inside, line_bytes) for use in uses]
        fits = sum(wider) * line_bytes <= room
        for at in range(len(uses)):
            if fits:
                traffic[at] = wider[at]
            elif round_bytes <= room:
                traffic[at] = min(loop.trips * traffic[at], traffic[at] * wider[at] / max(lines[at], 1e-9))
            else:
                traffic[at] *= loop.trips
        lines = wider
    return sum(traffic) * line_bytes
