"""Grid search: every setting of every structure, in the menu's order, as far as the budget goes.

Structures come in the order in which macro moves reach them. Each is entered once; then all combinations of the
micro actions' values are laid over its first measured row, the first action's values changing slowest, each
action also left out once. Nothing is learnt.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

from cake_tui.agents import Agent, AgentFactory
from cake_tui.agents._record import Record
from cake_tui.agents._space import Space, Step
from cake_tui.errors import UserError
from cake_tui.menu import Menu
from cake_tui.model.history import History
from cake_tui.model.move import Proposal
from cake_tui.model.row import Row
from cake_tui.model.schedule import Schedule

NAME = "grid"
LOOKED_AT = 2000  # untried combinations looked at a round, most of which the menu refuses


class _Place:
    """How far a structure's combinations have been looked at; what was looked at stays until it is on record."""

    def __init__(self, rest: Iterator[Step]) -> None:
        self._rest = rest
        self._waiting: list[Step] = []

    def untried(self, record: Record) -> Iterator[Step]:
        """Yield the combinations that are not on record, in order."""
        self._waiting = [step for step in self._waiting if not record.tried(step.schedule)]
        yield from list(self._waiting)
        for step in self._rest:
            if not record.tried(step.schedule):
                self._waiting.append(step)
                yield step

    def drop(self, step: Step) -> None:
        """Forget a combination that the menu refuses."""
        self._waiting.remove(step)


class GridAgent:
    """See the module's text. It remembers how far it got; beginning anew it skips what is on record."""

    def __init__(self) -> None:
        self._record = Record()
        self._space = Space()
        self._places: dict[int, _Place] = {}
        self._history: History | None = None
        self._menu: Menu | None = None

    def propose(self, history: History, menu: Menu, n: int, rng: random.Random) -> Sequence[Proposal]:
        """Return the next `n` settings; `rng` is not drawn from."""
        if history is not self._history or (menu is not self._menu and menu != self._menu):
            self._places, self._history, self._menu = {}, history, menu
        self._record.follow(history)
        self._space.bind(menu)
        proposals: list[Proposal] = []
        taken: set[Schedule] = set()
        firsts = {name: tried.measured[0] for name, tried in self._record.structures.items() if tried.measured}
        missing = not all(name in firsts for name in menu.structures)
        for base in list(firsts.values()):
            if missing and len(proposals) < n:
                self._enter(base, firsts, taken, proposals, n)
        looks = LOOKED_AT
        for base in firsts.values():
            looks = self._combine(base, taken, proposals, n, looks)
        return proposals

    def _enter(
        self, base: Row, firsts: dict[str, Row], taken: set[Schedule], proposals: list[Proposal], n: int
    ) -> None:
        """Enter each structure that has no time yet, by the first untried macro move that leads there."""
        if base.schedule is None:
            return
        entered = {schedule.structure for schedule in taken}
        for step in self._space.macro(base.schedule):
            structure = step.schedule.structure
            fresh = structure not in firsts and structure not in entered and not self._record.tried(step.schedule)
            if fresh and len(proposals) < n:
                entered.add(structure)
                self._add(base, step, f"enters {structure}", taken, proposals)

    def _combine(self, base: Row, taken: set[Schedule], proposals: list[Proposal], n: int, looks: int) -> int:
        """Go on with one structure's combinations; return how many more may be looked at this round."""
        if base.schedule is None:
            return looks
        place = self._places.get(base.number)
        if place is None:
            place = self._places[base.number] = _Place(self._combinations(base.schedule))
        for joined in place.untried(self._record):
            if len(proposals) == n or looks == 0:
                break
            looks -= 1
            if joined.schedule in taken:
                continue
            step = self._space.confirm(base.schedule, joined)
            if step is None:
                place.drop(joined)
            elif step.schedule not in taken and not self._record.tried(step.schedule):
                self._add(base, step, f"next setting of {step.schedule.structure}", taken, proposals)
        return looks

    def _combinations(self, schedule: Schedule) -> Iterator[Step]:
        choices: list[list[Step | None]] = [[None, *steps] for steps in self._space.by_action(schedule).values()]
        for parts in itertools.product(*choices):
            steps = [step for step in parts if step is not None]
            if steps:
                yield self._space.join(schedule, steps)

    def _add(self, base: Row, step: Step, reason: str, taken: set[Schedule], proposals: list[Proposal]) -> None:
        taken.add(step.schedule)
        proposals.append(Proposal(base.number, step.moves, reason, "grid", NAME))


def make(options: dict[str, Any]) -> Agent:
    """Make a grid agent; it has no options."""
    if options.get("argument"):
        raise UserError(f'--agent grid: found "{options["argument"]}", allowed: nothing behind the name')
    return GridAgent()


PLUGIN: AgentFactory = make
