"""Agents propose: they read the history and the menu and return proposals. One file an agent."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol

from cake_tui.menu import Menu
from cake_tui.model.history import History
from cake_tui.model.move import Proposal


class Agent(Protocol):
    """Keeps no private state that matters: everything comes from the history and the seeded generator."""

    def propose(self, history: History, menu: Menu, n: int, rng: random.Random) -> Sequence[Proposal]:
        """Return up to `n` proposals for the next round, best first.

        `n` is already twice the round's size where screening is on. Proposals whose base has no time, whose
        moves are not on the menu or that the laws refuse are journaled and cost their slot.
        """


class AgentFactory(Protocol):
    """What `PLUGIN` is: makes an agent from its options (``--agent script:FILE`` gives ``{"argument": FILE}``)."""

    def __call__(self, options: dict[str, Any]) -> Agent:
        """Raises UserError for an option that the agent does not know."""
