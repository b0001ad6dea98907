"""Takes the menu from top to bottom: the first moves that lead from the best kernel to an untried schedule."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from cake_tui.agents import Agent, AgentFactory
from cake_tui.errors import Ended
from cake_tui.menu import Menu
from cake_tui.model.history import History
from cake_tui.model.move import Proposal


class InOrderAgent:
    """Nothing is kept: what was tried is in the history."""

    def propose(self, history: History, menu: Menu, n: int, rng: random.Random) -> Sequence[Proposal]:
        """Return up to `n` proposals in the menu's order."""
        base = history.incumbent
        schedule = history.rows[base].schedule if base is not None else None
        if base is None or schedule is None:
            return ()
        tried = {row.schedule for row in history.rows}
        proposals: list[Proposal] = []
        for move in menu.moves(schedule):
            try:
                changed, level = menu.apply(schedule, (move,))
            except Ended:
                continue
            if len(proposals) < n and changed not in tried:
                tried.add(changed)
                proposals.append(Proposal(base, (move,), f"next on the menu ({level})", "grid", "in_order"))
        return proposals


def make(options: dict[str, Any]) -> Agent:
    """Make the agent; it has no options."""
    return InOrderAgent()


PLUGIN: AgentFactory = make
