"""A program uses only what its architecture has.

cp.async and bf16 mma need sm_80; TMA, clusters, phase-barrier byte counts and register budgets sm_90; wgmma sm_90a
itself. On ``c`` a block is one task on one core: no roles, no asynchronous copies, no barriers, no warps.
"""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir import program as ir
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.ir.program import Statement
from cake_tui.model.diagnostic import Diagnostic

NAME = "target-features"


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield statements that the target lacks, once a kind of statement."""
    if subject.program.target == "c":
        yield from _on_c(subject)
        return
    capability = subject.capability
    if not capability:
        yield Diagnostic(NAME, "arch", subject.program.arch, "an architecture like sm_80 or sm_90a", line=1)
        return
    seen = set()
    for path, statement in subject.sites:
        for what, needs, exactly in _needs(statement):
            lacks = capability < needs or (exactly and subject.program.arch != exactly)
            if lacks and what not in seen:
                seen.add(what)
                wanted = exactly or f"sm_{needs} or later"
                yield subject.refuse(
                    NAME,
                    path,
                    f"{what} on {subject.program.arch}",
                    wanted,
                    limit="capability",
                    asked=float(needs),
                    available=float(capability),
                    unit="compute capability",
                )
    for index, launch in enumerate(subject.program.launches):
        if launch.cluster and capability < 90:
            yield subject.refuse_launch(NAME, index, "cluster", f"clusters on {subject.program.arch}", "sm_90 or later")


def _needs(statement: Statement) -> Iterator[tuple[str, int, str]]:
    match statement:
        case ir.Copy(kind="tma_copy"):
            yield "tma_copy", 90, ""
        case ir.Copy(kind="async_copy"):
            yield "async_copy", 80, ""
        case ir.Contract(op="wgmma") | ir.Fence(kind="wgmma"):
            yield "wgmma", 90, "sm_90a"
        case ir.Contract(op="mma", math=math):
            yield f"mma of {math}", 80 if math in ("bf16", "tf32") else 70, ""
        case ir.Barrier():
            yield "a phase barrier", 80, ""
        case ir.Expect():
            yield "expect", 90, ""
        case ir.WarpRole(registers=registers) if registers is not None:
            yield "a register budget", 90, "sm_90a"
        case ir.Sync(scope="cluster") | ir.Reduce(scope="cluster") | ir.Pick(scope="cluster"):
            yield "cluster scope", 90, ""


def _on_c(subject: Subject) -> Iterator[Diagnostic]:
    for index, launch in enumerate(subject.program.launches):
        if subject.threads(launch) != 1:
            yield subject.refuse_launch(
                NAME,
                index,
                "threads",
                f"{subject.threads(launch)} threads a task",
                "1: a task is one core's",
                nearest="1",
            )
        if launch.cluster or launch.persistent is not None:
            yield subject.refuse_launch(NAME, index, "launch", "cluster or persistent on c", "a plain grid of tasks")
    seen = set()
    for path, statement in subject.sites:
        what = _foreign(statement)
        if what and what not in seen:
            seen.add(what)
            yield subject.refuse(NAME, path, f"{what} on c", "what one core does by itself: copy, map, outer, reduce")


def _foreign(statement: Statement) -> str:
    """What of a statement only a GPU has."""
    match statement:
        case ir.WarpRole() | ir.Role():
            return "warp roles"
        case ir.Copy(kind=kind) if kind != "copy":
            return kind
        case ir.Contract(op=op) if op != "outer":
            return op
        case ir.Barrier() | ir.Sync() | ir.Wait() | ir.Arrive() | ir.Expect():
            return "barriers"
        case ir.Commit() | ir.WaitGroup():
            return "groups of asynchronous copies"
        case ir.Fence():
            return "fences"
        case ir.Atomic():
            return "atomics"
        case ir.Reduce(scope=scope) | ir.Pick(scope=scope) if scope != "thread":
            return f"{scope} scope"
        case ir.Declare(buffer) if isinstance(buffer.spread, ir.Threads | ir.Fragment):
            return "a spread over threads"
    return ""


PLUGIN: Law = Law(NAME, check)
