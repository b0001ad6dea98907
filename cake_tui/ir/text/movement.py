"""Text of copies, commits, waits, barriers and fences: parsed and printed side by side."""

from __future__ import annotations

from cake_tui.ir.expr import Number, ParseError, show, show_ref
from cake_tui.ir.program import (
    Arrive,
    Barrier,
    Commit,
    Copy,
    Expect,
    Fence,
    Statement,
    Sync,
    Wait,
    WaitGroup,
)
from cake_tui.ir.text.declarations import read_barrier
from cake_tui.ir.text.line import Line, show_clause, show_completion, show_guard

_FENCES = ("async_proxy", "wgmma", "block", "cluster", "device")
_SYNCS = ("block", "warp", "cluster", "named")


def read_copy(line: Line, kind: str) -> Copy:
    """Read a copy of any kind, its word being read."""
    source = line.reference()
    line.expect("->")
    target = line.reference()
    vector = line.expression() if line.accept("vector") else None
    column = line.now.column
    completes = line.completion()
    if (completes is None) != (kind == "copy"):
        found = "nothing that completes it" if completes is None else "'completes'"
        needed = "'completes' behind an asynchronous copy" if completes is None else "none behind a plain copy"
        raise ParseError(line.line, column, found, needed)
    return Copy(source, target, kind, vector, completes, line.guard())  # type: ignore[arg-type]


def read_commit(line: Line) -> Commit:
    """Read ``commit group g``."""
    line.expect("group")
    return Commit(line.new_name("the group's name"))


def read_wait(line: Line) -> Wait | WaitGroup:
    """Read ``wait full[k]`` or ``wait group g pending 1``."""
    if line.accept("group"):
        group = line.new_name("the group's name")
        return WaitGroup(group, line.expression() if line.accept("pending") else Number(0))
    return Wait(line.new_name("a barrier's name or 'group'"), line.slot())


def read_arrive(line: Line) -> Arrive:
    """Read ``arrive empty[k] once a warp``."""
    name, slot = line.new_name("a barrier's name"), line.slot()
    once = "thread"
    if line.accept("once"):
        line.expect("a")
        once = line.one_of(("thread", "warp", "role"), "who arrives")
    return Arrive(name, slot, once)  # type: ignore[arg-type]


def read_expect(line: Line) -> Expect:
    """Read ``expect full[k] bytes E``."""
    name, slot = line.new_name("a barrier's name"), line.slot()
    line.expect("bytes")
    return Expect(name, slot, line.expression())


def read_barrier_or_sync(line: Line) -> Sync | Barrier:
    """Read ``barrier block`` and its kind, or the declaration ``barrier full[S] arrivals 1``."""
    if not line.sees(*_SYNCS) or line.ahead(1) == "[":
        return read_barrier(line)
    scope = line.take().text
    if scope != "named":
        return Sync(scope)  # type: ignore[arg-type]
    number = line.integer("the barrier's number")
    line.expect("threads")
    return Sync("named", number, line.expression())


def read_fence(line: Line) -> Fence:
    """Read ``fence async_proxy``."""
    return Fence(line.one_of(_FENCES, "a fence"))  # type: ignore[arg-type]


def show_movement(statement: Statement) -> str | None:
    """Print a statement of this file; None for others."""
    match statement:
        case Copy(source, target, kind, vector, completes, where):
            clauses = show_clause("vector", vector) + show_completion(completes) + show_guard(where)
            return f"{kind} {show_ref(source)} -> {show_ref(target)}{clauses}"
        case Commit(group):
            return f"commit group {group}"
        case WaitGroup(group, pending):
            return f"wait group {group}" + ("" if pending == Number(0) else f" pending {show(pending)}")
        case Wait(barrier, slot):
            return f"wait {barrier}[{show(slot)}]"
        case Arrive(barrier, slot, once):
            return f"arrive {barrier}[{show(slot)}]" + ("" if once == "thread" else f" once a {once}")
        case Expect(barrier, slot, count):
            return f"expect {barrier}[{show(slot)}] bytes {show(count)}"
        case Sync("named", number, threads):
            return f"barrier named {number}{show_clause('threads', threads)}"
        case Sync(scope):
            return f"barrier {scope}"
        case Fence(kind):
            return f"fence {kind}"
        case _:
            return None
