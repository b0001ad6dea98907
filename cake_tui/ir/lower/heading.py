"""What a source says in front: the comment with its schedule, the constants that it names, names it may not have."""

from __future__ import annotations

import re
from collections.abc import Container
from functools import lru_cache

from cake_tui.ir.expr import Span, names_in
from cake_tui.ir.lower.indices import c_int
from cake_tui.ir.program import Barrier, For, Launch, Program, WarpRole
from cake_tui.ir.refusal import refuse
from cake_tui.ir.walk import reads, walk_body, writes

_PRAGMA = re.compile(r"#pragma.*")
_WORD = re.compile(r"[A-Za-z_]\w*")


def title_of(program: Program, used: set[str]) -> str:
    """Return the program's name and architecture, and its schedule: structure and the knobs that the source names."""
    inside = ", ".join(
        f"{const.name}={c_int(const.value)}" for const in program.consts if const.values and const.name in used
    )
    where = f"{program.name} for {program.arch}"
    return f"{where}: {program.structure}({inside})" if program.structure else where


def used_in(program: Program, body: str) -> set[str]:
    """Return the constants and sizes that the functions name, and those that these are made of."""
    words = set(_WORD.findall(_PRAGMA.sub("", body)))
    for const in reversed(program.consts):
        if const.name in words:
            words |= names_in(const.value)
    return words


def names_of(program: Program) -> frozenset[str]:
    """Return every name of a program: what made-up names avoid."""
    found = frozenset(one.name for group in (program.sizes, program.consts, program.buffers) for one in group)
    return found.union(*map(_names_of_launch, program.launches))


@lru_cache(maxsize=256)
def _names_of_launch(launch: Launch) -> frozenset[str]:
    found = {launch.name, *(axis.name for axis in launch.axes)}
    for statement in walk_body(launch.body):
        if isinstance(statement, For):
            found.add(statement.variable)
        for ref in (*reads(statement), *writes(statement)):
            found |= {index.axis for index in ref.indices if isinstance(index, Span) and index.axis}
        buffer = getattr(statement, "buffer", None)
        if buffer is not None:
            found.add(buffer.name)
        if isinstance(statement, Barrier | WarpRole):
            found.add(statement.name)
    return frozenset(found)


def check_names(names: frozenset[str], keywords: Container[str], target: str) -> None:
    """Raise Ended(Rejected) for a name that the target's language keeps for itself."""
    for name in sorted(names):
        if name in keywords:
            raise refuse(
                "lowering", name, f"the name {name}", f"a name that {target} does not keep for itself", step="lower"
            )
