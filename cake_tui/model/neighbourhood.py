"""Block shapes around a candidate that were tried from it and brought nothing: what agents avoid and people see."""

from __future__ import annotations

import math
from collections.abc import Iterable

from cake_tui.model.row import Row
from cake_tui.model.schedule import Schedule


def block_shape(schedule: Schedule | None) -> tuple[int, int] | None:
    """Threads of a block along x and y; None where the structure has no such knobs."""
    knobs = dict(schedule.knobs) if schedule is not None else {}
    x, y = knobs.get("threads_x"), knobs.get("threads_y")
    if not isinstance(x, int) or not isinstance(y, int) or x < 1 or y < 1:
        return None
    return x, y


def octaves(shape: tuple[int, int]) -> tuple[float, float]:
    """A block's shape in octaves, in which neighbours are one apart."""
    return math.log2(shape[0]), math.log2(shape[1])


def explored(rows: Iterable[Row], best: Row) -> list[tuple[int, int]]:
    """Block shapes of later measured candidates of the same structure that started from `best`, sorted.

    Its own shape is not among them; as long as it is the best, none of them won.
    """
    here, structure = block_shape(best.schedule), best.schedule.structure if best.schedule is not None else ""
    found = set()
    for row in rows:
        if row.number > best.number and row.proposal.base == best.number and row.time_us is not None:
            shape = block_shape(row.schedule)
            if shape is not None and shape != here and row.schedule is not None and row.schedule.structure == structure:
                found.add(shape)
    return sorted(found)
