"""Fetches, replaces or removes one statement of a program by its path: what makes mutants."""

from __future__ import annotations

import msgspec

from cake_tui.ir.program import For, If, Launch, Program, Role, Statement
from cake_tui.ir.walk import Path, children


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
