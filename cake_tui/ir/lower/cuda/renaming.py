"""Names that CUDA C++ keeps for itself get an underscore: a program may well call a tile ``new``."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TypeVar

import msgspec

from cake_tui.ir import program as ir
from cake_tui.ir.expr import Name, Ref, Span
from cake_tui.ir.lower.heading import names_of

T = TypeVar("T")
# Which fields of what hold names; launches are called by theirs from outside and keep them.
_FIELDS: Mapping[type, tuple[str, ...]] = {
    Name: ("name",), Ref: ("buffer",), Span: ("axis",), ir.For: ("variable", "carry"), ir.Buffer: ("name",),
    ir.Axis: ("name",), ir.Size: ("name",), ir.Const: ("name",), ir.Barrier: ("name",), ir.Wait: ("barrier",),
    ir.Arrive: ("barrier",), ir.Expect: ("barrier",), ir.Completion: ("name",), ir.Reduce: ("scratch",),
    ir.Pick: ("scratch",),
}  # fmt: skip


def legal(program: ir.Program, kept: Container[str]) -> tuple[ir.Program, dict[str, str]]:
    """Return a program without the names that are kept, and what its new names were before."""
    taken = names_of(program)
    new: dict[str, str] = {}
    for name in sorted(taken - {launch.name for launch in program.launches}):
        if name in kept:
            changed = f"{name}_"
            while changed in taken or changed in kept:
                changed += "_"
            new[name] = changed
    if not new:
        return program, {}
    return renamed(program, new), {changed: name for name, changed in new.items()}


def renamed(node: T, new: Mapping[str, str]) -> T:
    """Return a node of a program, or a tuple of them, with other names."""
    if isinstance(node, tuple):
        return tuple([renamed(item, new) for item in node])  # type: ignore[return-value]
    if not isinstance(node, msgspec.Struct):
        return node
    holding = _FIELDS.get(type(node), ())
    changes = {}
    for field in node.__struct_fields__:
        value = getattr(node, field)
        if field in holding:
            changes[field] = (
                tuple(new.get(name, name) for name in value) if isinstance(value, tuple) else new.get(value, value)
            )
        else:
            changes[field] = renamed(value, new)
    return msgspec.structs.replace(node, **changes)
