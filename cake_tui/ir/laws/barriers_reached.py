"""A barrier of threads stands where all of its threads pass.

``barrier block`` and reductions within the block stand outside of roles; inside of a role a named barrier counts the
threads that reach it; one thread alone meets nobody; a cluster's barrier is not behind a branch on the block.
"""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir import program as ir
from cake_tui.ir.expr import Expr, names_in
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.ir.program import WARP
from cake_tui.ir.walk import Path
from cake_tui.model.diagnostic import Diagnostic

NAME = "barriers-reached"
NUMBERS = 16  # named barriers of a block; 0 is the block's own


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield barriers and block-wide reductions that some of their threads never reach."""
    named: dict[tuple[int, int], list[Path]] = {}
    for path, statement in subject.sites:
        match statement:
            case ir.Sync(scope="named", number=number):
                named.setdefault((path[0], number), []).append(path)
                if not 1 <= number < NUMBERS:
                    yield subject.refuse(
                        NAME,
                        path,
                        f"barrier number {number}",
                        f"1 to {NUMBERS - 1}",
                        nearest=str(min(max(number, 1), NUMBERS - 1)),
                    )
            case ir.Sync(scope=scope) | ir.Reduce(scope=scope) | ir.Pick(scope=scope) if scope != "thread":
                yield from _scope(subject, path, scope)
    for (index, number), paths in named.items():
        yield from _named(subject, index, number, paths)


def _scope(subject: Subject, path: Path, scope: str) -> Iterator[Diagnostic]:
    role = subject.role_of(path)
    if scope == "device":
        yield subject.refuse(
            NAME, path, "device scope inside a launch", "a second launch: blocks cannot wait for each other"
        )
        return
    if role is not None and role[1] == "one thread":
        yield subject.refuse(
            NAME, path, f"{scope} scope in code of one thread of role {role[0]}", "code that all of its warps run"
        )
        return
    partial = role is not None and subject.role_threads(path[0]).get(role[0]) != subject.threads(
        subject.program.launches[path[0]]
    )
    if scope in ("block", "cluster") and partial:
        assert role is not None  # partial says so
        threads = subject.role_threads(path[0]).get(role[0], 0)
        yield subject.refuse(
            NAME,
            path,
            f"{scope} scope in role {role[0]}, which is {threads} threads of the block",
            f"barrier named n threads {threads}",
            nearest=f"barrier named 1 threads {threads}",
            limit="threads",
            asked=float(subject.threads(subject.program.launches[path[0]])),
            available=float(threads),
            unit="threads",
        )
    axes = {axis.name for axis in subject.program.launches[path[0]].axes}
    if scope == "cluster":
        for branch in _branches(subject, path):
            if names_in(branch) & axes:
                yield subject.refuse(
                    NAME, path, "cluster scope behind a branch on the block", "a place that every block passes"
                )


def _branches(subject: Subject, path: Path) -> Iterator[Expr]:
    for end in range(2, len(path)):
        statement = subject.statements.get(path[:end])
        if isinstance(statement, ir.If):
            yield statement.condition
        elif isinstance(statement, ir.For):
            yield statement.start
            yield statement.stop


def _named(subject: Subject, index: int, number: int, paths: list[Path]) -> Iterator[Diagnostic]:
    threads = subject.role_threads(index)
    whole = subject.threads(subject.program.launches[index])
    present: dict[str, int] = {}
    for path in paths:
        role = subject.role_of(path)
        name = role[0] if role else ""
        present[name] = threads.get(name, whole) if role is None or role[1] == "all" else WARP
        if role is not None and role[1] == "one thread":
            yield subject.refuse(
                NAME, path, f"a barrier in code of one thread of role {name}", "code that whole warps run"
            )
    reach = sum(present.values())
    for path in paths:
        statement = subject.statements[path]
        assert isinstance(statement, ir.Sync)  # collected as such
        asked = subject.number(statement.threads) if statement.threads is not None else 0
        if asked != reach or asked % WARP:
            yield subject.refuse(
                NAME,
                path,
                f"it counts {asked} threads, {reach} reach it",
                f"threads {reach}",
                nearest=str(reach),
                limit="threads",
                asked=float(asked),
                available=float(reach),
                unit="threads",
            )


PLUGIN: Law = Law(NAME, check)
