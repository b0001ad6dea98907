"""A schedule: a structure's name and its knobs, sorted and frozen. It is what moves rewrite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

KnobValue = int | bool | str


def is_legal(value: KnobValue, values: Iterable[KnobValue]) -> bool:
    """Whether a value is one of `values`, of the same type: True is not 1."""
    return any(value == legal and type(value) is type(legal) for legal in values)


class Knob(msgspec.Struct, frozen=True, gc=False):
    """A named value within a structure, with its legal values on one device and target."""

    name: str
    values: tuple[KnobValue, ...]
    default: KnobValue


class Schedule(msgspec.Struct, frozen=True, order=True, gc=False, cache_hash=True):
    """A way to organise the kernel (`structure`) and its numbers (`knobs`, sorted by name).

    `structure` is the stem of a builder's file, ``template`` for a user's own kernel file, or
    ``text-<hash>`` for a program text stored in the session.
    """

    structure: str
    knobs: tuple[tuple[str, KnobValue], ...] = ()

    @classmethod
    def of(cls, structure: str, knobs: Mapping[str, KnobValue] | None = None) -> Schedule:
        """Make a schedule from any mapping of knobs; equal contents give equal schedules."""
        return cls(structure, tuple(sorted((knobs or {}).items())))

    def knob(self, name: str) -> KnobValue | None:
        """Return the knob's value, or None where this structure has no such knob."""
        return next((value for key, value in self.knobs if key == name), None)

    def with_knobs(self, changes: Mapping[str, KnobValue]) -> Schedule:
        """Return a new schedule with `changes` laid over the knobs."""
        return Schedule.of(self.structure, {**dict(self.knobs), **changes})

    @property
    def text(self) -> str:
        """One line for people: ``packed(block_k=256, thread_m=8)``."""
        inside = ", ".join(f"{name}={value}" for name, value in self.knobs)
        return f"{self.structure}({inside})"
