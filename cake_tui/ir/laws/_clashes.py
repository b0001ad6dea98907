"""Words for what the machine found, shared by the laws of ordering."""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir.analysis.boxes import spelled
from cake_tui.ir.analysis.steps import Clash
from cake_tui.ir.laws._subject import Subject


def clashes_of(subject: Subject, *kinds: str) -> Iterator[Clash]:
    """Yield what the machine found of some kinds."""
    return (clash for clash in subject.clashes if clash.kind in kinds)


def elements(clash: Clash) -> str:
    """``a_tile[0, 0..63, 0..15]``."""
    return f"{clash.buffer}{spelled(clash.box)}" if clash.box else clash.buffer


def line_of(subject: Subject, site: int | None) -> str:
    """``line 15 (tma_copy …)``, for the other statement of a pair."""
    if site is None:
        return ""
    path = subject.sites[site][0]
    return f"line {subject.lines[path]} ({subject.words(path)})"
