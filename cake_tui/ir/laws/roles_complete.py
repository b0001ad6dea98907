"""Warp roles share out all warps of the block, none twice; register budgets are for whole groups of four warps.

A role has one declaration and a body, and what a role holds in registers no other role touches.
"""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir import program as ir
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.ir.program import WARP
from cake_tui.ir.walk import Path, reads, writes
from cake_tui.model.diagnostic import Diagnostic

NAME = "roles-complete"
MOST_WARPS = 64  # more than any block has
GROUP = 4  # warps that share one register budget and issue one wgmma
BUDGET = (24, 240)  # what setmaxnreg takes, in steps of 8


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield roles that overlap, leave warps out, or have budgets that the hardware cannot set."""
    for index, launch in enumerate(subject.program.launches):
        roles = [(path, item) for path, item in subject.sites if path[0] == index and isinstance(item, ir.WarpRole)]
        if not roles:
            continue
        threads = subject.threads(launch)
        if threads % WARP:
            yield subject.refuse_launch(
                NAME,
                index,
                "threads",
                f"{threads} threads with roles",
                f"a multiple of {WARP}",
                nearest=str(-(-threads // WARP) * WARP),
            )
        taken: dict[int, str] = {}
        for path, role in roles:
            yield from _one(subject, path, role, taken, threads // WARP)
        missing = [warp for warp in range(min(threads // WARP, MOST_WARPS)) if warp not in taken]
        if missing:
            yield subject.refuse(
                NAME,
                roles[-1][0],
                f"warp {missing[0]} of {threads // WARP} has no role",
                "every warp in one role",
                limit="warps",
                asked=float(threads // WARP),
                available=float(len(taken)),
                unit="warps",
            )
        yield from _bodies(subject, index, roles)
        yield from _phases(subject, index)
    yield from _owners(subject)
    yield from _wgmma(subject)


def _one(subject: Subject, path: Path, role: ir.WarpRole, taken: dict[int, str], warps: int) -> Iterator[Diagnostic]:
    first, last = subject.number(role.first), subject.number(role.last)
    if last < first or last >= warps:
        yield subject.refuse(
            NAME,
            path,
            f"warps {first} to {last} of {warps}",
            f"warps from 0 to {warps - 1}",
            limit="warps",
            asked=float(last + 1),
            available=float(warps),
            unit="warps",
        )
    for warp in range(first, min(last, MOST_WARPS) + 1):
        if warp in taken:
            yield subject.refuse(NAME, path, f"warp {warp} is also in role {taken[warp]}", "roles without common warps")
            break
        taken[warp] = role.name
    if role.registers is None:
        return
    if first % GROUP or (last - first + 1) % GROUP:
        yield subject.refuse(
            NAME,
            path,
            f"a register budget for warps {first} to {last}",
            "whole groups of four warps",
            limit="warp_group",
            asked=float(last - first + 1),
            available=float(GROUP),
            unit="warps",
        )
    if role.registers % 8 or not BUDGET[0] <= role.registers <= BUDGET[1]:
        nearest = min(max(round(role.registers / 8) * 8, BUDGET[0]), BUDGET[1])
        yield subject.refuse(
            NAME,
            path,
            f"registers {role.registers}",
            f"a multiple of 8 from {BUDGET[0]} to {BUDGET[1]}",
            nearest=str(nearest),
        )


def _bodies(subject: Subject, index: int, roles: list[tuple[Path, ir.WarpRole]]) -> Iterator[Diagnostic]:
    with_body: dict[str, str] = {}
    for path, item in subject.sites:
        if path[0] != index or not isinstance(item, ir.Role):
            continue
        if "one warp" in (who := {with_body.setdefault(item.name, item.who), item.who}) and len(who) > 1:
            yield subject.refuse(
                NAME, path, f"role {item.name} is run by one warp here and not there", "one or the other"
            )
    seen: set[str] = set()
    for path, role in roles:
        if role.name in seen:
            yield subject.refuse(NAME, path, f"role {role.name} a second time", "one declaration a role")
        seen.add(role.name)
        if role.name not in with_body:
            yield subject.refuse(
                NAME, path, f"role {role.name} has no body", f"role {role.name}: with what its warps do"
            )


def _phases(subject: Subject, index: int) -> Iterator[Diagnostic]:
    """Yield waits of a role on a barrier that it also waits for elsewhere: each body counts phases from the start."""
    homes: dict[tuple[str, str], Path] = {}
    for path, item in subject.sites:
        if path[0] != index or not isinstance(item, ir.Wait):
            continue
        role = subject.role_of(path)
        who, home = (role[0], path[:2]) if role is not None else ("", path[:1])
        elsewhere = any(
            barrier == item.barrier and other != home and (name == who or "" in (name, who))
            for (barrier, name), other in homes.items()
        )
        homes.setdefault((item.barrier, who), home)
        if elsewhere:
            found = f"the same threads wait for {item.barrier} elsewhere too"
            yield subject.refuse(NAME, path, found, "all of a role's waits for a barrier in one body")


def _owners(subject: Subject) -> Iterator[Diagnostic]:
    for path, statement in subject.sites:
        role = subject.role_of(path)
        if isinstance(statement, ir.Role) or role is None:
            continue
        buffers = subject.buffers(path[0])
        for ref in (*reads(statement), *writes(statement)):
            owner = buffers[ref.buffer].owner
            if owner and owner != role[0]:
                yield subject.refuse(NAME, path, f"{ref.buffer} is held by role {owner}", f"a buffer of role {role[0]}")


def _wgmma(subject: Subject) -> Iterator[Diagnostic]:
    for path, statement in subject.sites:
        if not isinstance(statement, ir.Contract) or statement.op != "wgmma":
            continue
        threads = subject.executors(path)
        if threads % (WARP * GROUP):
            yield subject.refuse(
                NAME,
                path,
                f"wgmma by {threads} threads",
                "whole groups of four warps",
                limit="warp_group",
                asked=float(threads),
                available=float(WARP * GROUP),
                unit="threads",
            )


PLUGIN: Law = Law(NAME, check)
