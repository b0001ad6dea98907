"""Which of several accesses a gap in their union is next to, so that a diagnostic can name it."""

from __future__ import annotations

from cake_tui.ir.analysis.accesses import Accessing
from cake_tui.ir.analysis.boxes import Box
from cake_tui.ir.analysis.coverage import Reached


def nearest_accesses(gap: Box, covers: list[tuple[Accessing, Reached]]) -> list[Accessing]:
    """The accesses whose boxes end where the gap begins, or begin where it ends; else the last."""
    found = [
        access
        for access, cover in covers
        if any(
            low == gap_high + 1 or high + 1 == gap_low
            for box in cover.boxes
            for (low, high), (gap_low, gap_high) in zip(box, gap)
        )
    ]
    return list({access.path: access for access in found}.values()) or [covers[-1][0]]
