"""Random search, the yardstick: a uniform structure, then a uniform setting of it; nothing is learnt.

Each proposal draws a structure from all that moves lead to. One without a time yet is entered by a random macro
move from a random base; in the others every micro action sets one of its values, or what is there already, each
with the same probability. So settings are uniform over what the menu reaches, wherever structures have their defaults.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
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

NAME = "random"
TRIES = 24  # draws a proposal until it is given up


class RandomAgent:
    """See the module's text; it never proposes what was tried before."""

    def __init__(self) -> None:
        self._record = Record()
        self._space = Space()

    def propose(self, history: History, menu: Menu, n: int, rng: random.Random) -> Sequence[Proposal]:
        """Return up to `n` proposals."""
        if history.incumbent is None:
            return ()
        self._record.follow(history)
        self._space.bind(menu)
        bases = {name: tried.measured for name, tried in self._record.structures.items() if tried.measured}
        taken: set[Schedule] = set()
        proposals: list[Proposal] = []
        for _ in range(n * TRIES):
            if len(proposals) == n or not bases:
                break
            base, step = self._draw(bases, rng)
            if step is None or step.schedule in taken or self._record.tried(step.schedule):
                continue
            taken.add(step.schedule)
            reason = f"random setting of {step.schedule.structure} from candidate {base.number}"
            proposals.append(Proposal(base.number, step.moves, reason, "random", NAME))
        return proposals

    def _draw(self, bases: dict[str, list[Row]], rng: random.Random) -> tuple[Row, Step | None]:
        base = rng.choice(bases[rng.choice(list(bases))])
        schedule = base.schedule
        if schedule is None:
            return base, None
        if all(name in bases for name in self._space.menu.structures):
            entries = []
        else:
            entries = [step for step in self._space.macro(schedule) if step.schedule.structure not in bases]
        structures = list(dict.fromkeys([*bases, *(step.schedule.structure for step in entries)]))
        structure = rng.choice(structures)
        if structure not in bases:
            return base, rng.choice([step for step in entries if step.schedule.structure == structure])
        base = rng.choice(bases[structure])
        return base, self._setting(base, rng)

    def _setting(self, base: Row, rng: random.Random) -> Step | None:
        """Join a random move of each micro action; none of those that would set what is there already."""
        if base.schedule is None:
            return None
        drawn = [rng.choice([None, *choices]) for choices in self._space.by_action(base.schedule).values()]
        chosen = [step for step in drawn if step is not None]
        if not chosen:
            return None
        return self._space.confirm(base.schedule, self._space.join(base.schedule, chosen))


def make(options: dict[str, Any]) -> Agent:
    """Make a random agent; it has no options."""
    if options.get("argument"):
        raise UserError(f'--agent random: found "{options["argument"]}", allowed: nothing behind the name')
    return RandomAgent()


PLUGIN: AgentFactory = make
