"""Whole: the lines of a pane that is too narrow for them, wrapped, the newest at the bottom."""

from __future__ import annotations

from collections.abc import Sequence

from textual.binding import Binding

from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line, Span
from cake_tui.tui.screens.dialog import Dialog

LONGEST = 20_000  # characters of a line
INDENT = 10  # cells: behind the time


class Whole(Dialog):
    """`told` is text with its line breaks, and its tone; it opens at the end."""

    BINDINGS = [Binding("enter,q", "dismiss_dialog", "close", show=False)]

    def __init__(self, title: str, told: Sequence[Span], ascii: bool = False) -> None:  # noqa: A002 the flag's own name
        super().__init__(ascii)
        self.heading = title
        self.told = told
        self.top = 1 << 40

    def caption(self) -> str:
        """What is shown."""
        return self.heading

    def hint(self) -> str:
        """Keys."""
        return "up down scroll  esc close"

    def lines(self, width: int) -> list[Line]:
        """Every text wrapped, and broken where it is."""
        out: list[Line] = []
        for text, tone in self.told:
            for at, part in enumerate(text.splitlines() or [""]):
                lead = " " * (INDENT if at else 1)
                pieces = fmt.wrap(fmt.visible(part, LONGEST), max(10, width - len(lead)), 0 if at else INDENT - 1)
                out += [((lead + piece, tone),) for piece in pieces]
        return out or [((" nothing yet", "dim"),)]
