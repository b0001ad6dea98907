"""What an analysis of a launch can tell apart: schedules that differ in nothing of it share what was found once.

An unroll factor and the padding of rows are left out: they say how code and memory are laid out, not which elements
a statement reaches or when.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import get_args

import msgspec

from cake_tui.ir.expr import names_in
from cake_tui.ir.expr.nodes import Index
from cake_tui.ir.program import Buffer, Const, For, Launch, Program, Size

_EXPRESSIONS = frozenset(get_args(Index))
_UNSEEN = frozenset(((For, "unroll"), (Buffer, "pad")))


class Seen(msgspec.Struct, frozen=True, cache_hash=True):
    """What a launch's analyses are told of its program: sizes, the constants that count here, and the buffers."""

    sizes: tuple[Size, ...]
    consts: tuple[Const, ...]
    buffers: tuple[Buffer, ...]


def seen(program: Program, launch: Launch) -> Seen:
    """Return what decides where a launch's statements reach."""
    names = names_seen(launch, program.buffers)
    consts: list[Const] = []
    for const in reversed(program.consts):
        if const.name in names:
            names |= names_in(const.value)
            consts.append(const)
    return Seen(program.sizes, tuple(reversed(consts)), program.buffers)


@lru_cache(maxsize=1 << 9)
def names_seen(launch: Launch, buffers: tuple[Buffer, ...]) -> frozenset[str]:
    """Return every name in a launch and in the buffers that it may use, but those in nothing than what is left out."""
    return frozenset((*_names(launch), *_names(buffers)))


def _names(value: object) -> Iterator[str]:
    if type(value) in _EXPRESSIONS:
        yield from names_in(value)
    elif type(value) is tuple:
        for item in value:
            yield from _names(item)
    elif isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            if (type(value), field) not in _UNSEEN:
                yield from _names(getattr(value, field))
