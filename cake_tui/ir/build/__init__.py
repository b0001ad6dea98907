"""Builders: a folder a family, a file a structure, each with a ``PLUGIN`` found by place."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Protocol, cast

from cake_tui import registry
from cake_tui.ir.program import Program
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Knob, KnobValue


class Structure(Protocol):
    """What a structure's file offers. Nothing outside that file knows the structure."""

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets that it can be built for."""
        ...

    def knobs(self, problem: Problem, target: Target, device: Device) -> tuple[Knob, ...]:
        """Return the knobs with their legal values on this device and their defaults."""
        ...

    def build(
        self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target, device: Device, runtime_sizes: bool
    ) -> Program:
        """Make the program; raises Ended(Rejected) where a constraint between knobs is broken."""
        ...

    def multiples(self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target) -> dict[str, int]:
        """Return the multiples of each size that the knobs need on a target; 1 may be left out."""
        ...


def names(family: str | None, target: str) -> tuple[str, ...]:
    """List the structures of a family that exist on a target, ``naive`` first."""
    if family is None:
        return ()
    return _on_target(family, registry.names(f"ir/build/{family}"), target)


@lru_cache(maxsize=16)
def _on_target(family: str, found: tuple[str, ...], target: str) -> tuple[str, ...]:
    there = [name for name in found if target in load(family, name).targets]
    return tuple(sorted(there, key=lambda name: (name != "naive", name)))


def load(family: str, name: str) -> Structure:
    """Import one structure."""
    return cast(Structure, registry.load(f"ir/build/{family}", name))
