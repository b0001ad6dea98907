"""Roles that do the same share their code: the cache of instructions holds a long loop once, not once a role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from cake_tui.ir.expr import Binary, Expr, Number
from cake_tui.ir.lower.cuda.renaming import renamed
from cake_tui.ir.program import Declare, For, If, Launch, Role, Statement, WarpRole


class Band(msgspec.Struct, frozen=True):
    """The threads of a role: the first one and how many."""

    role: WarpRole
    first: int
    count: int


def shared_roles(launch: Launch, roles: Sequence[Role], bands: Mapping[str, Band]) -> list[list[Role]]:
    """Sort roles, in order of their threads, into those that can share their code.

    They follow on each other with as many threads each, and begin alike, with a loop among what is alike.
    """
    owners = {one.buffer.owner for one in launch.body if isinstance(one, Declare)}
    found: list[list[Role]] = []
    for role in roles:
        group = [*found[-1], role] if found else [role]
        first, band = bands[group[0].name], bands[role.name]
        fits = (band.first, band.count) == (first.first + (len(group) - 1) * first.count, first.count)
        plain = all(one.who == "all" and one.name not in owners for one in group)
        alike = first.role.registers == band.role.registers and fits and plain and len(group) > 1
        if alike and any(isinstance(one, For) for one in _alike(group, Number(0))[0]):
            found[-1] = group
        else:
            found.append([role])
    return found


def merged(roles: Sequence[Role], group: Expr) -> Role:
    """Return one role for several that begin alike; `group` counts them."""
    first, *others = roles
    if not others:
        return first
    begin, ends = _alike(roles, group)
    end = ends[-1]
    for number in reversed(range(len(others) if any(ends) else 0)):
        end = (If(Binary("==", group, Number(number)), ends[number], end),)
    return msgspec.structs.replace(first, body=(*begin, *end))


def _alike(roles: Sequence[Role], group: Expr) -> tuple[tuple[Statement, ...], list[tuple[Statement, ...]]]:
    """Return what roles begin with alike, as the first one names it, and the rest of each."""
    bodies = [role.body for role in roles]
    begin: list[Statement] = []
    while all(bodies):
        heads = [body[0] for body in bodies]
        names = [_same_registers(heads[0], head) for head in heads]
        if None not in names:
            bodies = [renamed(body, new or {}) for body, new in zip(bodies, names, strict=True)]
            begin.append(heads[0])
        elif all(head == heads[0] for head in heads):
            begin.append(heads[0])
        elif all(isinstance(head, For) and _from(head, Number(at)) == head for at, head in enumerate(heads)) and all(
            _from(head, group) == _from(heads[0], group) for head in heads
        ):
            begin.append(_from(heads[0], group))
        else:
            break
        bodies = [body[1:] for body in bodies]
    return tuple(begin), bodies


def _same_registers(first: Statement, other: Statement) -> dict[str, str] | None:
    """Return how the registers that two roles declare alike are renamed, None where they do not."""
    if not isinstance(first, Declare) or not isinstance(other, Declare) or first.buffer.space != "register":
        return None
    named = msgspec.structs.replace(other.buffer, name=first.buffer.name, owner=first.buffer.owner)
    return {other.buffer.name: first.buffer.name} if named == first.buffer else None


def _from(loop: Statement, start: Expr) -> Statement:
    """Return a loop that starts elsewhere."""
    return msgspec.structs.replace(loop, start=start)
