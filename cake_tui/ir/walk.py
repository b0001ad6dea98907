"""Statement paths: walk a program, and what each statement reads and writes.

A path is ``(launch, child, child, …)``; the children of an `If`'s else branch are counted ``-1, -2, …``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from cake_tui.ir.expr import Expr, Ref, refs_in
from cake_tui.ir.program import (
    Assign,
    Atomic,
    Buffer,
    Contract,
    Convert,
    Copy,
    Declare,
    For,
    Guard,
    If,
    Launch,
    Pick,
    Program,
    Reduce,
    Role,
    Split,
    Statement,
)

Path = tuple[int, ...]


def children(statement: Statement) -> tuple[tuple[int, Statement], ...]:
    """Return the statements directly inside, each with its step of the path."""
    if type(statement) is For or type(statement) is Role:
        return tuple(enumerate(statement.body))
    if type(statement) is If:
        return (*enumerate(statement.then), *((-1 - at, child) for at, child in enumerate(statement.orelse)))
    return ()


def walk(program: Program) -> list[tuple[Path, Statement]]:
    """Return every statement with its path, in the order of the text."""
    return [site for at, launch in enumerate(program.launches) for site in walk_launch(launch, at)]


@lru_cache(maxsize=1 << 9)
def walk_launch(launch: Launch, index: int) -> tuple[tuple[Path, Statement], ...]:
    """Return every statement of one launch with its path."""
    found: list[tuple[Path, Statement]] = []
    for inner, statement in enumerate(launch.body):
        _below((index, inner), statement, found)
    return tuple(found)


@lru_cache(maxsize=1 << 12)
def walk_body(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Return every statement of a body and below, in the order of the text."""
    found: list[Statement] = []
    left = list(body[::-1])
    while left:
        statement = left.pop()
        found.append(statement)
        if type(statement) in _BODIES:
            left += [child for _, child in children(statement)][::-1]
    return tuple(found)


_BODIES = frozenset((For, If, Role))


def _below(path: Path, statement: Statement, found: list[tuple[Path, Statement]]) -> None:
    found.append((path, statement))
    if type(statement) in _BODIES:
        for step, child in children(statement):
            _below((*path, step), child, found)


def buffers_of(buffers: Iterable[Buffer], launch: Launch) -> dict[str, Buffer]:
    """Return every buffer that a launch may use, by name: the program's `buffers` and its own."""
    found = {buffer.name: buffer for buffer in buffers}
    for statement in walk_body(launch.body):
        if isinstance(statement, Declare):
            found[statement.buffer.name] = statement.buffer
    return found


@lru_cache(maxsize=1 << 12)
def reads(statement: Statement) -> tuple[Ref, ...]:
    """Return the references that the statement itself reads, those of children left out."""
    values = _READ.get(type(statement))
    found = values(statement) if values is not None else ()
    guard: Guard | None = getattr(statement, "where", None)
    if guard is not None:
        found += (guard.condition,) if guard.otherwise is None else (guard.condition, guard.otherwise)
    return tuple([ref for expr in found for ref in refs_in(expr)])


def writes(statement: Statement) -> tuple[Ref, ...]:
    """Return the references that the statement itself writes, those of children left out."""
    targets = _WRITTEN.get(type(statement))
    return targets(statement) if targets is not None else ()


# What a statement reads besides its `where`, and what it writes, by its kind; kinds left out do neither.
_READ: Mapping[type, Callable[[Any], tuple[Expr, ...]]] = {
    Copy: lambda copy: (copy.source,),
    Split: lambda split: (split.source,),
    Convert: lambda convert: (convert.source,),
    Reduce: lambda reduce: (reduce.source, reduce.target) if reduce.carry else (reduce.source,),
    Pick: lambda pick: (pick.source, pick.values, pick.indices) if pick.carry else (pick.source,),
    Assign: lambda assign: (assign.value, assign.target) if assign.op == "+=" else (assign.value,),
    Contract: lambda contract: (contract.left, contract.right, contract.target),
    Atomic: lambda atomic: (atomic.value, atomic.target),
    Declare: lambda declare: () if declare.buffer.init is None else (declare.buffer.init,),
    If: lambda branch: (branch.condition,),
}
_WRITTEN: Mapping[type, Callable[[Any], tuple[Ref, ...]]] = {
    **dict.fromkeys((Copy, Assign, Contract, Reduce, Atomic, Convert), lambda statement: (statement.target,)),
    Split: lambda split: split.parts,
    Pick: lambda pick: (pick.values, pick.indices),
    Declare: lambda declare: () if declare.buffer.init is None else (Ref(declare.buffer.name),),
}
