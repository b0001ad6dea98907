"""An asynchronous statement and its commit, group and wait are one thread's: same role, one unit a group.

cp.async moves from global to shared memory; wgmma multiplies tiles in shared memory (the left one may be registers).
"""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir import program as ir
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.ir.walk import Path
from cake_tui.model.diagnostic import Diagnostic

NAME = "completions"


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield groups used across roles or units, and asynchronous statements between the wrong memories."""
    for index in range(len(subject.program.launches)):
        yield from _groups(subject, index)
    for path, statement in subject.sites:
        buffers = subject.buffers(path[0])
        match statement:
            case ir.Copy(kind="async_copy", source=source, target=target):
                spaces = buffers[source.buffer].space, buffers[target.buffer].space
                if spaces[0] not in ("param", "workspace") or spaces[1] != "shared":
                    yield subject.refuse(NAME, path, f"from {spaces[0]} to {spaces[1]}", "from global to shared memory")
                if statement.completes is None:
                    yield subject.refuse(
                        NAME, path, "nothing completes it", "completes group … or completes barrier[…]"
                    )
            case ir.Contract(op="wgmma", left=left, right=right, completes=completes):
                if buffers[right.buffer].space != "shared" or buffers[left.buffer].space not in ("shared", "register"):
                    yield subject.refuse(NAME, path, "operands that wgmma cannot reach", "tiles in shared memory")
                if completes is None or completes.kind != "group":
                    yield subject.refuse(NAME, path, "no group completes it", "completes group …")
            case ir.Copy(kind="copy", source=source, target=target) | ir.Copy(source=source, target=target):
                one, other = buffers[source.buffer].dtype, buffers[target.buffer].dtype
                if one != other:
                    yield subject.refuse(
                        NAME, path, f"{one} into {other}", "a cast: convert, split or a map", nearest=f"{other}(…)"
                    )


def _groups(subject: Subject, index: int) -> Iterator[Diagnostic]:
    units: dict[str, str] = {}
    homes: dict[str, str] = {}
    waits: list[tuple[Path, str, str]] = []
    names: dict[str, str] = {}
    for path, statement in subject.sites:
        if path[0] != index:
            continue
        role = subject.role_of(path)
        home = role[0] if role else ""
        match statement:
            case ir.Copy(kind=kind, completes=ir.Completion(kind="group", name=group)):
                unit: str = kind
            case ir.Contract(op=op, completes=ir.Completion(kind="group", name=group)):
                unit = op
            case ir.Commit(group) | ir.WaitGroup(group):
                waits.append((path, group, home))
                continue
            case _:
                continue
        if units.setdefault(group, unit) != unit:
            yield subject.refuse(
                NAME, path, f"group {group} of {unit}, also of {units[group]}", "one group a kind of statement"
            )
        if homes.setdefault(group, home) != home:
            yield subject.refuse(NAME, path, f"group {group} in two roles", "one group a role")
        if names.setdefault(f"{home}/{unit}", group) != group:
            yield subject.refuse(
                NAME,
                path,
                f"groups {names[f'{home}/{unit}']} and {group}, which the hardware keeps in one queue",
                "one group for all of them",
                nearest=names[f"{home}/{unit}"],
            )
    for path, group, home in waits:
        if group in homes and homes[group] != home:
            yield subject.refuse(
                NAME,
                path,
                f"group {group} belongs to {homes[group] or 'the block'}",
                "commit and wait where it was issued",
            )


PLUGIN: Law = Law(NAME, check)
