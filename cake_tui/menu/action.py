"""Actions: named moves with typed parameters, made of edits. What actions.toml declares, bound to one target."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import msgspec

from cake_tui.model.move import Level, Move
from cake_tui.model.schedule import KnobValue

REVERT = "revert_last"  # the one edit that rewrites no schedule: the loop moves the base


class Parameter(msgspec.Struct, frozen=True):
    """One argument of an action with its legal values on this target; `about` says what it counts."""

    name: str
    values: tuple[KnobValue, ...]
    about: str = ""


class EditCall(msgspec.Struct, frozen=True):
    """One edit of an action; an argument ``$m`` stands for the action's parameter m."""

    do: str
    arguments: tuple[tuple[str, KnobValue], ...] = ()

    def bound(self, values: Mapping[str, KnobValue]) -> dict[str, KnobValue]:
        """Return the edit's arguments with parameters replaced by a move's values."""
        return {
            name: values[value[1:]] if isinstance(value, str) and value.startswith("$") else value
            for name, value in self.arguments
        }


class Action(msgspec.Struct, frozen=True):
    """A named move of the action space on one target.

    `parameters` keep the order of the file, which is the order of a move's arguments. `refused` says why
    the action has no meaning here; it is empty where it has one.
    """

    name: str
    level: Level
    summary: str
    edits: tuple[EditCall, ...]
    parameters: tuple[Parameter, ...] = ()
    hints: tuple[str, ...] = ()
    enabled: bool = True
    refused: str = ""

    @property
    def usable(self) -> bool:
        """Enabled, and with a meaning on this target."""
        return self.enabled and not self.refused

    @property
    def reverts(self) -> bool:
        """Whether it is the move that sets the base back instead of rewriting a schedule."""
        return any(edit.do == REVERT for edit in self.edits)

    @property
    def signature(self) -> str:
        """``apply_register_block(m, n)``."""
        return f"{self.name}({', '.join(parameter.name for parameter in self.parameters)})"

    def moves(self) -> Iterator[Move]:
        """Yield the action with every combination of its parameters' values."""
        names = [parameter.name for parameter in self.parameters]
        for values in itertools.product(*(parameter.values for parameter in self.parameters)):
            yield Move(self.name, tuple(zip(names, values)))


def spelled(value: KnobValue) -> str:
    """Write a value as a person types it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
