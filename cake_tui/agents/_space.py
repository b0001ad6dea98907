"""Where the menu's moves lead, learnt once a structure: the menu is asked rarely, and always before a proposal.

Most moves set knobs to fixed values. Asked from two schedules that differ, such a move shows all that it sets; from
then on its result is laid down without asking. Moves that answer otherwise (a switch) are asked each time.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from cake_tui.errors import Ended
from cake_tui.menu import Menu
from cake_tui.model.move import Level, Move
from cake_tui.model.schedule import KnobValue, Schedule

KEPT = 4096  # schedules whose steps are remembered
T = TypeVar("T")


class Step(msgspec.Struct, frozen=True):
    """Moves with the schedule that they lead to; a micro step's is laid down, not asked, until `confirm`."""

    moves: tuple[Move, ...]
    schedule: Schedule
    level: Level


class _Effects(msgspec.Struct):
    """What the menu's moves do from the schedules of one structure."""

    sets: dict[Move, dict[str, KnobValue]] = {}
    varying: list[Move] = []  # to be asked from each schedule
    conditional: dict[Move, dict[str, KnobValue]] = {}  # refused until another knob is set: asked too
    macro: list[Move] = []


class Space:
    """The menu's moves as steps; a pure function of the menu, remembered for speed."""

    def __init__(self) -> None:
        self._menu: Menu | None = None
        self._effects: dict[str, _Effects] = {}
        self._micro: dict[Schedule, tuple[Step, ...]] = {}
        self._macro: dict[Schedule, tuple[Step, ...]] = {}
        self._joinable: dict[Schedule, dict[str, list[Step]]] = {}

    def bind(self, menu: Menu) -> None:
        """Use this menu from here on."""
        if menu is not self._menu and menu != self._menu:
            self._effects, self._micro, self._macro, self._joinable = {}, {}, {}, {}
        self._menu = menu

    @property
    def menu(self) -> Menu:
        """The menu in use; raises ValueError before `bind`."""
        if self._menu is None:
            raise ValueError("no menu was bound")
        return self._menu

    def micro(self, schedule: Schedule) -> tuple[Step, ...]:
        """Return the single moves that change numbers, in the menu's order."""
        found = self._micro.get(schedule)
        if found is None:
            effects = self._learnt(schedule)
            before = dict(schedule.knobs)
            steps = {move: _laid(schedule, before, move, sets) for move, sets in effects.sets.items()}
            steps |= {move: self._ask(schedule, (move,)) for move in (*effects.varying, *effects.conditional)}
            order = (steps[move] for move in self.menu.moves(schedule) if move in steps)
            found = tuple(step for step in order if step is not None and step.level == "micro")
            _remember(self._micro, schedule, found)
        return found

    def macro(self, schedule: Schedule) -> tuple[Step, ...]:
        """Return the single moves that change the structure, in the menu's order."""
        found = self._macro.get(schedule)
        if found is None:
            effects = self._learnt(schedule)
            steps = (self._ask(schedule, (move,)) for move in (*effects.macro, *effects.varying))
            found = tuple(step for step in steps if step is not None and step.level == "macro")
            _remember(self._macro, schedule, found)
        return found

    def confirm(self, schedule: Schedule, step: Step) -> Step | None:
        """Ask the menu: return the step as it really is, None where a move is refused or the level is another."""
        asked = self._ask(schedule, step.moves)
        return asked if asked is not None and asked.level == step.level else None

    def join(self, schedule: Schedule, steps: Sequence[Step]) -> Step:
        """Lay the changes of several micro steps over each other; moves that need others to come first come last."""
        last = self._learnt(schedule).conditional
        changes: dict[str, KnobValue] = {}
        moves: tuple[Move, ...] = ()
        if last:
            steps = sorted(steps, key=lambda step: any(move in last for move in step.moves))
        for step in steps:
            changes.update(_difference(schedule, step.schedule))
            moves += step.moves
        return Step(moves, _with(schedule, changes), "micro")

    def joints(self, schedule: Schedule, count: int, most: int, rng: random.Random) -> list[Step]:
        """Draw up to `count` steps of two to `most` micro moves of different actions."""
        choices = list(self.by_action(schedule).values())
        if len(choices) < 2:
            return []
        found = []
        for _ in range(count):
            chosen = rng.sample(choices, min(len(choices), rng.randint(2, most)))
            found.append(self.join(schedule, [rng.choice(steps) for steps in chosen]))
        return found

    def by_action(self, schedule: Schedule) -> dict[str, list[Step]]:
        """Return what may be joined, by the names of actions: micro steps, and those that need others first."""
        steps = self._joinable.get(schedule)
        if steps is not None:
            return steps
        steps = {}
        alone = self.micro(schedule)
        for step in alone:
            steps.setdefault(step.moves[0].action, []).append(step)
        known = {step.moves[0] for step in alone}
        before = dict(schedule.knobs)
        for move, sets in self._learnt(schedule).conditional.items():
            laid = _laid(schedule, before, move, sets) if move not in known else None
            if laid is not None:
                steps.setdefault(move.action, []).append(laid)
        _remember(self._joinable, schedule, steps)
        return steps

    def _learnt(self, schedule: Schedule) -> _Effects:
        found = self._effects.get(schedule.structure)
        if found is None:
            found = self._effects[schedule.structure] = self._learn(self._start(schedule))
        return found

    def _start(self, schedule: Schedule) -> Schedule:
        """Learn from the structure's default, so that what is learnt does not depend on who asks first."""
        try:
            return self.menu.default(schedule.structure)
        except Ended:
            return schedule

    def _learn(self, here: Schedule) -> _Effects:
        """Ask every move from `here` and from a schedule that differs from it in all that moves set."""
        effects = _Effects()
        moves = self.menu.moves(here)
        from_here = {move: self._ask(here, (move,)) for move in moves}
        there = here
        for move in _farthest(here, from_here.values()):
            step = self._ask(there, (move,))
            there = step.schedule if step is not None and step.level == "micro" else there
        for move in moves:
            asked = ((here, from_here[move]), (there, self._ask(there, (move,))))
            levels = {step.level for _, step in asked if step is not None}
            sets = _all_that_is_set(asked)
            if "macro" in levels:
                effects.macro.append(move)
            elif sets is None:
                answered = [(before, step) for before, step in asked if step is not None]
                if len(answered) == 1:
                    effects.conditional[move] = dict(_difference(answered[0][0], answered[0][1].schedule))
                else:
                    effects.varying.append(move)
            elif sets:
                effects.sets[move] = sets
        return effects

    def _ask(self, schedule: Schedule, moves: tuple[Move, ...]) -> Step | None:
        try:
            changed, level = self.menu.apply(schedule, moves)
        except Ended:
            return None
        return Step(moves, changed, level)


def _farthest(here: Schedule, steps: Iterable[Step | None]) -> list[Move]:
    """Of each action the move that changes most knobs, the first of equals."""
    found: dict[str, tuple[int, Move]] = {}
    for step in steps:
        if step is not None and step.level == "micro":
            move = step.moves[0]
            changed = len(_difference(here, step.schedule))
            if changed > found.get(move.action, (0, move))[0]:
                found[move.action] = (changed, move)
    return [move for _, move in found.values()]


def _all_that_is_set(asked: tuple[tuple[Schedule, Step | None], ...]) -> dict[str, KnobValue] | None:
    """Return the knobs that a move sets in both answers; empty where both refuse, None where they do not agree."""
    sets: dict[str, KnobValue] = {}
    for before, step in asked:
        known = dict(before.knobs)
        for name, value in step.schedule.knobs if step is not None else ():
            if known.get(name) != value and sets.setdefault(name, value) != value:
                return None
    for before, step in asked:
        # A refusal fits only where nothing would change.
        after = dict(step.schedule.knobs) if step is not None else dict(before.knobs)
        if {**dict(before.knobs), **sets} != after:
            return None
    return sets


def _laid(
    schedule: Schedule, before: Mapping[str, KnobValue], move: Move, sets: Mapping[str, KnobValue]
) -> Step | None:
    if all(before.get(name) == value for name, value in sets.items()):
        return None
    return Step((move,), _with(schedule, sets), "micro")


def _difference(before: Schedule, after: Schedule) -> list[tuple[str, KnobValue]]:
    """Return the knobs of `after` that `before` has otherwise."""
    if len(before.knobs) == len(after.knobs):
        return [there for here, there in zip(before.knobs, after.knobs) if here != there]
    known = dict(before.knobs)
    return [(name, value) for name, value in after.knobs if known.get(name) != value]


def _with(schedule: Schedule, changes: Mapping[str, KnobValue]) -> Schedule:
    """As `Schedule.with_knobs`, without sorting where no knob is new."""
    after = dict(schedule.knobs)
    after.update(changes)
    if len(after) != len(schedule.knobs):
        return Schedule.of(schedule.structure, after)
    return Schedule(schedule.structure, tuple(after.items()))


def _remember(kept: dict[Schedule, T], schedule: Schedule, steps: T) -> None:
    if len(kept) >= KEPT:
        kept.clear()
    kept[schedule] = steps
