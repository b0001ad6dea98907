"""What one thread by itself can get wrong: to read shared or register elements that it has not written.

With one thread, nothing asynchronous and no barrier every access is ordered behind all earlier ones, so that the
machine's races, stuck waits and unfinished copies cannot be.
"""

from __future__ import annotations

from collections.abc import Iterable

from cake_tui.ir import program as ir
from cake_tui.ir.analysis.boxes import Box, uncovered
from cake_tui.ir.analysis.steps import Clash, Do, Forget, Step
from cake_tui.ir.program import Statement

_SYNCHRONISES = frozenset((ir.Commit, ir.WaitGroup, ir.Wait, ir.Arrive, ir.Expect, ir.Sync, ir.Fence))


def orders(statement: Statement) -> bool:
    """Whether a statement synchronises threads, or is over only later."""
    if type(statement) is ir.Copy:
        return statement.kind != "copy"
    if type(statement) is ir.Contract:
        return statement.op == "wgmma"
    if type(statement) is ir.Reduce or type(statement) is ir.Pick:
        return statement.scope in ("block", "cluster")
    return type(statement) in _SYNCHRONISES


def unwritten(steps: Iterable[Step]) -> list[Clash]:
    """Return the reads of a thread's steps that no write of it comes before, each site once."""
    written: dict[str, list[Box]] = {}
    found: dict[int, Clash] = {}
    for step in steps:
        if isinstance(step, Forget):
            written.pop(step.buffer, None)
        elif isinstance(step, Do):
            for touch in step.touches:
                if touch.writes or not touch.track:
                    continue
                gap = uncovered(touch.box, written.get(touch.buffer, ()))
                if gap is not None:
                    found.setdefault(step.site, Clash("unwritten", step.site, None, touch.buffer, gap))
            for touch in step.touches:
                if touch.writes:
                    boxes = written.setdefault(touch.buffer, [])
                    if uncovered(touch.box, boxes) is not None:
                        boxes.append(touch.box)
    return list(found.values())
