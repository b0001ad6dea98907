"""Bytes that move into a cache while a nest runs: footprints of loops against the cache's capacity.

A loop whose whole footprint fits brings each line in once. One whose single round fits keeps what successive rounds
share. Otherwise every round brings its lines in again. (Footprint analysis as for tiled loops: Wolf and Lam 1991.)
"""

from __future__ import annotations

from collections.abc import Sequence

from cake_tui.ir.cost.nests import Use, Work

FILL = 0.75  # share of a cache that stays useful beside everything else that passes through


class Traffic:
    """What a launch moves into caches of any size: the footprints of its loops, worked out once for all of them."""

    def __init__(self, works: Sequence[Work], line_bytes: int) -> None:
        self.works = works
        self.line_bytes = line_bytes
        self.groups = [_nesting(group, line_bytes) for group in _groups(works)]

    def moved_bytes(self, capacity: float) -> float:
        """Return bytes moved into a cache of so many bytes, over the whole launch; registers move nothing."""
        if not capacity:
            return sum(use.elements * use.element_bytes * work.runs for work in self.works for use in _memory(work))
        room = capacity * FILL
        total = 0.0
        for trips, footprints in self.groups:
            total += _group_bytes(trips, footprints, room, self.line_bytes)
        return total


def moved_bytes(works: Sequence[Work], capacity: float, line_bytes: int) -> float:
    """Return bytes that a launch moves into one cache of so many bytes."""
    return Traffic(works, line_bytes).moved_bytes(capacity)


def _memory(work: Work) -> list[Use]:
    return [use for use in work.uses if use.buffer.space != "register" and use.lengths]


def _groups(works: Sequence[Work]) -> list[list[Work]]:
    """Statements that share their innermost loops are in the cache together."""
    found: dict[tuple[str, ...], list[Work]] = {}
    for work in works:
        if _memory(work):
            found.setdefault(tuple(loop.name for loop in work.loops), []).append(work)
    return list(found.values())


def _nesting(group: list[Work], line_bytes: int) -> tuple[list[float], list[list[float]]]:
    """Trips of a group's loops from the innermost on, and lines of each use: in one round, then in all of each loop."""
    uses = [use for work in group for use in _memory(work)]
    inside: dict[str, float] = {}
    footprints = [[use.lines(inside, line_bytes) for use in uses]]
    trips = []
    for loop in reversed(group[0].loops):
        inside[loop.name] = loop.trips
        trips.append(loop.trips)
        footprints.append([use.lines(inside, line_bytes) for use in uses])
    return trips, footprints


def _group_bytes(trips: list[float], footprints: list[list[float]], room: float, line_bytes: int) -> float:
    lines = footprints[0]
    traffic = list(lines)
    for rounds, wider in zip(trips, footprints[1:]):
        round_bytes = sum(lines) * line_bytes
        fits = sum(wider) * line_bytes <= room
        for at in range(len(lines)):
            if fits:
                traffic[at] = wider[at]
            elif round_bytes <= room:
                traffic[at] = min(rounds * traffic[at], traffic[at] * wider[at] / max(lines[at], 1e-9))
            else:
                traffic[at] *= rounds
        lines = wider
    return sum(traffic) * line_bytes
