"""The menu: the action space bound to one problem, device and target. Agents and people choose from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec

from cake_tui import ir
from cake_tui.ir.refusal import nearest_value, refuse
from cake_tui.menu.action import Action, spelled
from cake_tui.menu.words import parse, parse_moves
from cake_tui.model.device import Device, Target
from cake_tui.model.move import Level, Move
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Knob, Schedule, is_legal


@dataclass(frozen=True)
class Menu:
    """Immutable: a change of the file or a disabled action makes another menu. `source` names the file."""

    actions: tuple[Action, ...]
    problem: Problem
    device: Device
    source: str

    @property
    def target(self) -> Target:
        """What candidates are lowered to."""
        return self.device.target

    @cached_property
    def structures(self) -> tuple[str, ...]:
        """The structures of this problem on this target, the baseline's first."""
        return ir.structures(self.problem, self.target)

    @property
    def first(self) -> Schedule:
        """Candidate 0's schedule: the naive structure, or a template at its defaults."""
        return ir.first_schedule(self.problem, self.target, self.device)

    def knobs(self, structure: str) -> tuple[Knob, ...]:
        """Return a structure's knobs with their legal values on this device."""
        return ir.knobs(self.problem, structure, self.target, self.device)

    def default(self, structure: str) -> Schedule:
        """Return a structure's first setting."""
        return ir.default_schedule(self.problem, structure, self.target, self.device)

    def action(self, name: str) -> Action | None:
        """Return the action of that name, None where there is none."""
        return next((action for action in self.actions if action.name == name), None)

    def moves(self, schedule: Schedule) -> tuple[Move, ...]:
        """Return every usable action with every combination of its values; ``revert_last`` is the loop's own.

        Moves that this schedule's structure gives no meaning to are among them: `apply` refuses those with
        the reason, which costs no candidate's build.
        """
        return tuple(move for action in self.actions if action.usable and not action.reverts for move in action.moves())

    def reverts(self, move: Move) -> bool:
        """Whether a move is ``revert_last()``."""
        action = self.action(move.action)
        return action is not None and action.reverts

    def parse(self, text: str) -> Move:
        """Read ``apply_register_block(4, 8)``; raises UserError: what, allowed, nearest name or value."""
        return parse(text, self.actions, self.target)

    def parse_moves(self, text: str) -> tuple[Move, ...]:
        """Read one move or several joined by ``+``; raises UserError."""
        return parse_moves(text, self.actions, self.target)

    def apply(self, schedule: Schedule, moves: Sequence[Move]) -> tuple[Schedule, Level]:
        """schedule → schedule with all edits of all moves done, in order; macro where the structure changed.

        Raises Ended(Rejected) whose diagnostics name the field that forbids it.
        """
        changed = schedule
        for move in moves:
            action = self._checked(move)
            values = dict(move.arguments)
            for edit in action.edits:
                changed = ir.apply(self.problem, changed, edit.do, edit.bound(values), self.target, self.device)
        return changed, "macro" if changed.structure != schedule.structure else "micro"

    def without(self, names: Iterable[str]) -> Menu:
        """Return the menu with these actions disabled; names it does not have are passed over."""
        gone = frozenset(names)
        if not any(action.name in gone and action.enabled for action in self.actions):
            return self
        kept = (
            msgspec.structs.replace(action, enabled=False) if action.name in gone else action for action in self.actions
        )
        return replace(self, actions=tuple(kept))

    def _checked(self, move: Move) -> Action:
        """Return the move's action where the menu allows it with these arguments; raises Ended(Rejected)."""
        action = self.action(move.action)
        if action is None:
            raise refuse("menu", move.action, "no such action", f"one of {', '.join(a.name for a in self.actions)}")
        if action.reverts:
            raise refuse("menu", action.name, "it rewrites no schedule", "a move of its own, taken by the loop")
        if action.refused:
            raise refuse("menu", action.name, f"no meaning on {self.target}: {action.refused}", "another action")
        if not action.enabled:
            raise refuse("menu", action.name, "it is disabled", "an enabled action")
        given = [name for name, _ in move.arguments]
        if given != [parameter.name for parameter in action.parameters]:
            raise refuse("menu", action.name, f"arguments ({', '.join(given)})", action.signature)
        for parameter, (_, value) in zip(action.parameters, move.arguments):
            if not is_legal(value, parameter.values):
                allowed = ", ".join(map(spelled, parameter.values))
                near = nearest_value(value, parameter.values)
                raise refuse(
                    "menu",
                    parameter.name,
                    f"{action.name} with {spelled(value)}",
                    f"one of {allowed}",
                    nearest=spelled(near),
                )
        return action
