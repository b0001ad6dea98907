"""The legal moves from a schedule, remembered: what the menu refuses is never proposed, and it is asked once."""

from __future__ import annotations

import random

import msgspec

from cake_tui.errors import Ended
from cake_tui.menu import Menu
from cake_tui.model.move import Level, Move
from cake_tui.model.outcome import Rejected
from cake_tui.model.schedule import Schedule

KEPT = 4096  # schedules whose moves are remembered
# Refusals that hold for every schedule of a structure; others depend on its numbers.
OF_STRUCTURE = frozenset({"menu", "no-meaning", "legal-values", "accumulation"})


class Step(msgspec.Struct, frozen=True):
    """A legal move with the schedule that it leads to."""

    moves: tuple[Move, ...]
    schedule: Schedule
    level: Level


class Space:
    """The menu's moves as steps; a pure function of the menu, remembered for speed."""

    def __init__(self) -> None:
        self._menu: Menu | None = None
        self._steps: dict[Schedule, tuple[Step, ...]] = {}
        self._refused: dict[str, set[Move]] = {}

    def bind(self, menu: Menu) -> None:
        """Use this menu from here on."""
        if menu is not self._menu and menu != self._menu:
            self._steps, self._refused = {}, {}
        self._menu = menu

    @property
    def menu(self) -> Menu:
        """The menu in use; raises ValueError before `bind`."""
        if self._menu is None:
            raise ValueError("no menu was bound")
        return self._menu

    def steps(self, schedule: Schedule, level: Level | None = None) -> tuple[Step, ...]:
        """Return the single moves that are legal from a schedule, in the menu's order."""
        found = self._steps.get(schedule)
        if found is None:
            if len(self._steps) >= KEPT:
                self._steps.clear()
            refused = self._refused.setdefault(schedule.structure, set())
            moves = (move for move in self.menu.moves(schedule) if move not in refused)
            found = tuple(step for move in moves if (step := self._try(schedule, move)) is not None)
            self._steps[schedule] = found
        return found if level is None else tuple(step for step in found if step.level == level)

    def joined(self, schedule: Schedule, moves: tuple[Move, ...], level: Level) -> Step | None:
        """Return several moves as one step, None where the menu refuses one or the level is another."""
        try:
            changed, reached = self.menu.apply(schedule, moves)
        except Ended:
            return None
        return Step(moves, changed, reached) if reached == level else None

    def guessed_joints(self, schedule: Schedule, count: int, most: int, rng: random.Random) -> list[Step]:
        """Draw up to `count` steps of two to `most` micro moves of different actions.

        Their schedules are guessed by laying the single moves' changes over each other, which is quick; ask
        `joined` before one is proposed.
        """
        by_action: dict[str, list[Step]] = {}
        for step in self.steps(schedule, "micro"):
            by_action.setdefault(step.moves[0].action, []).append(step)
        names = list(by_action)
        found: list[Step] = []
        if len(names) < 2:
            return found
        before = dict(schedule.knobs)
        for _ in range(count):
            chosen = [rng.choice(by_action[name]) for name in rng.sample(names, min(len(names), rng.randint(2, most)))]
            after = dict(before)
            for step in chosen:
                after.update(pair for pair in step.schedule.knobs if before.get(pair[0]) != pair[1])
            moves = tuple(move for step in chosen for move in step.moves)
            found.append(Step(moves, Schedule.of(schedule.structure, after), "micro"))
        return found

    def _try(self, schedule: Schedule, move: Move) -> Step | None:
        try:
            changed, level = self.menu.apply(schedule, (move,))
        except Ended as ended:
            outcome = ended.outcome
            if isinstance(outcome, Rejected) and any(d.law in OF_STRUCTURE for d in outcome.diagnostics):
                self._refused[schedule.structure].add(move)
            return None
        return Step((move,), changed, level)
