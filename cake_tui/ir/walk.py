"""Statement paths: walk a program, fetch, replace or remove one statement, and what each one reads and writes.

A path is ``(launch, child, child, …)``; the children of an `If`'s else branch are counted ``-1, -2, …``.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cake_tui.ir.expr import Expr, Ref, refs_in
from cake_tui.ir.program import (
    Assign,
    Atomic,
    Contract,
    Convert,
    Copy,
    Declare,
    For,
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
    match statement:
        case For(body=body) | Role(body=body):
            return tuple(enumerate(body))
        case If(then=then, orelse=orelse):
            return (*enumerate(then), *((-1 - at, child) for at, child in enumerate(orelse)))
        case _:
            return ()


def walk(program: Program) -> Iterator[tuple[Path, Statement]]:
    """Yield every statement with its path, in the order of the text."""
    for at, launch in enumerate(program.launches):
        for inner, statement in enumerate(launch.body):
            yield from _below((at, inner), statement)


def walk_body(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Yield every statement of a body and below, in the order of the text."""
    for statement in body:
        for _, found in _below((), statement):
            yield found


def _below(path: Path, statement: Statement) -> Iterator[tuple[Path, Statement]]:
    yield path, statement
    for step, child in children(statement):
        yield from _below((*path, step), child)


def get(program: Program, path: Path) -> Statement:
    """Return the statement at `path`; raises KeyError where there is none."""
    return _get(program.launches[path[0]].body, path[1:])


def _get(body: tuple[Statement, ...], path: Path) -> Statement:
    statement = dict(enumerate(body))[path[0]]
    for step in path[1:]:
        statement = dict(children(statement))[step]
    return statement


def replace(program: Program, path: Path, new: tuple[Statement, ...]) -> Program:
    """Return the program with the statement at `path` replaced by any number of others."""
    launch = program.launches[path[0]]
    changed = msgspec.structs.replace(launch, body=_replace(launch.body, path[1:], new))
    launches: tuple[Launch, ...] = (*program.launches[: path[0]], changed, *program.launches[path[0] + 1 :])
    return msgspec.structs.replace(program, launches=launches)


def remove(program: Program, path: Path) -> Program:
    """Return the program without the statement at `path` and what is inside it."""
    return replace(program, path, ())


def _replace(body: tuple[Statement, ...], path: Path, new: tuple[Statement, ...]) -> tuple[Statement, ...]:
    step, rest = path[0], path[1:]
    if not 0 <= step < len(body):
        raise KeyError(path)
    if rest:
        new = (_inside(body[step], rest, new),)
    return (*body[:step], *new, *body[step + 1 :])


def _inside(statement: Statement, path: Path, new: tuple[Statement, ...]) -> Statement:
    match statement:
        case If(then=then, orelse=orelse) if path[0] < 0:
            flipped = (-1 - path[0], *path[1:])
            return msgspec.structs.replace(statement, then=then, orelse=_replace(orelse, flipped, new))
        case If(then=then):
            return msgspec.structs.replace(statement, then=_replace(then, path, new))
        case For(body=body) | Role(body=body):
            return msgspec.structs.replace(statement, body=_replace(body, path, new))
        case _:
            raise KeyError(path)


def reads(statement: Statement) -> tuple[Ref, ...]:
    """Return the references that the statement itself reads, those of children left out."""
    return tuple(ref for expr in _values(statement) for ref in refs_in(expr))


def writes(statement: Statement) -> tuple[Ref, ...]:
    """Return the references that the statement itself writes, those of children left out."""
    match statement:
        case Copy(target=target) | Assign(target=target) | Contract(target=target) | Reduce(target=target):
            return (target,)
        case Atomic(target=target) | Convert(target=target):
            return (target,)
        case Split(parts=parts):
            return parts
        case Pick(values=values, indices=indices):
            return (values, indices)
        case Declare(buffer=buffer) if buffer.init is not None:
            return (Ref(buffer.name),)
        case _:
            return ()


def _values(statement: Statement) -> tuple[Expr, ...]:
    found: tuple[Expr, ...] = ()
    match statement:
        case Copy(source=source) | Split(source=source) | Convert(source=source):
            found = (source,)
        case Reduce(source=source, target=target, carry=carry):
            found = (source, target) if carry else (source,)
        case Pick(source=source, values=values, indices=indices, carry=carry):
            found = (source, values, indices) if carry else (source,)
        case Assign(target=target, value=value, op=op):
            found = (value, target) if op == "+=" else (value,)
        case Contract(target=target, left=left, right=right):
            found = (left, right, target)
        case Atomic(target=target, value=value):
            found = (value, target)
        case Declare(buffer=buffer) if buffer.init is not None:
            found = (buffer.init,)
        case If(condition=condition):
            found = (condition,)
        case _:
            pass
    guard = getattr(statement, "where", None)
    if guard is not None:
        found += (guard.condition,) if guard.otherwise is None else (guard.condition, guard.otherwise)
    return found
