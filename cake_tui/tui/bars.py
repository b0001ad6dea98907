"""The tab bar (where not all panes fit) and the footer (main keys, or what was just done)."""

from __future__ import annotations

from collections.abc import Sequence

from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line
from cake_tui.tui.lines import LinesWidget
from cake_tui.tui.pane import Pane


class TabBar(LinesWidget):
    """All panes by number; those on screen are bold, the chosen one reversed."""

    def show(self, panes: Sequence[Pane], chosen: str, shown: Sequence[Pane], ascii: bool) -> None:  # noqa: A002
        """Draw the bar; names give way to numbers where they do not fit."""
        self.ascii = ascii
        titles = [f" {pane.number} {pane.title} " for pane in panes]
        short = [f" {pane.number} {pane.pane_name} " for pane in panes]
        numbers = [f" {pane.number} " for pane in panes]
        fitting = (names for names in (titles, short) if sum(map(len, names)) <= self.size.width)
        names = next(fitting, numbers)
        spans: list[tuple[str, str]] = []
        for pane, name, title in zip(panes, names, short):
            here = pane.pane_name == chosen
            text = title if here and names is numbers else name
            spans.append((text, "focus!" if here else "strong" if pane in shown else "dim"))
        self.put([tuple(spans)])


class FootLine(LinesWidget):
    """One line: the main keys with their words, or a message in their place until it is old."""

    def show(self, keys: Sequence[tuple[str, str]], message: tuple[str, str] | None, ascii: bool) -> None:  # noqa: A002
        """Draw keys with their words, as many as fit, or the message."""
        self.ascii = ascii
        if message is not None:
            text, tone = message
            self.put([((" " + fmt.visible(text, 500), tone),)])
            return
        spans: list[tuple[str, str]] = []
        room = self.size.width
        for key, word in keys:
            gap = "  " if spans else " "
            need = len(gap) + len(key) + 1 + len(word)
            if need <= room:
                spans += [(gap, ""), (key, "key"), (f" {word}", "dim")]
                room -= need
        line: Line = tuple(spans)
        self.put([line])
