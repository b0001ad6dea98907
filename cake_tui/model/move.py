"""A move: a named action with its arguments; a proposal: where to start from, moves and a reason."""

from __future__ import annotations

from typing import Literal

import msgspec

from cake_tui.model.schedule import KnobValue

Level = Literal["macro", "micro"]
ChosenBy = Literal["finding", "weight", "probe", "random", "grid", "script", "llm", "person", "start"]


class Move(msgspec.Struct, frozen=True, order=True, gc=False):
    """``apply_register_block(4, 8)``: arguments keep the order of the action's parameters."""

    action: str
    arguments: tuple[tuple[str, KnobValue], ...] = ()

    @property
    def text(self) -> str:
        """As a person types it and the journal shows it."""
        return f"{self.action}({', '.join(str(value) for _, value in self.arguments)})"


class Proposal(msgspec.Struct, frozen=True, gc=False):
    """One attempt somebody asks for: rewrite candidate `base` by `moves`."""

    base: int
    moves: tuple[Move, ...]
    reason: str
    chosen_by: ChosenBy
    who: str  # the agent's name, or the person's
    request: str | None = None  # id of the request that injected it

    @property
    def text(self) -> str:
        """All moves on one line; the baseline, which has none, reads ``start``."""
        return " + ".join(move.text for move in self.moves) or "start"
