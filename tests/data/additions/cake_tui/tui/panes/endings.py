"""Endings: how many candidates ended in each way."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from textual.binding import Binding

from cake_tui.tui.format import Line
from cake_tui.tui.pane import Pane
from cake_tui.tui.views import View


class Endings(Pane):
    """A line an ending, the most frequent first or by name."""

    order: ClassVar[int] = 90
    title: ClassVar[str] = "endings"
    help: ClassVar[str] = "how many candidates ended in each way"

    DEFAULT_CSS = "Endings { text-style: none; }"
    BINDINGS = [Binding("x", "sort", "by number or by name", id="endings.sort")]

    def __init__(self, name: str, number: int) -> None:
        super().__init__(name, number)
        self.by_name = False

    def summary(self, view: View) -> Line:
        """The order."""
        return (("by name" if self.by_name else "by number", "dim"),)

    def body(self, view: View, width: int, height: int) -> list[Line]:
        """The counts."""
        counts = Counter(row.outcome for row in view.history.rows if row.outcome)
        ordered = sorted(counts.items(), key=lambda item: item[0] if self.by_name else -item[1])
        lines: list[Line] = [((f" {times:>5} {ending}", ""),) for ending, times in ordered]
        return [lines[index] for index in self.window(len(lines), height)]

    def action_sort(self) -> None:
        """The other order."""
        self.by_name = not self.by_name
        self.draw()


PLUGIN: type[Pane] = Endings
