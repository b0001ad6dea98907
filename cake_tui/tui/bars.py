"""The tab bar (where not all panes fit) and the footer (main keys, or what was just done)."""

from __future__ import annotations

from collections.abc import Sequence

from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line
from cake_tui.tui.keys import footer
from cake_tui.tui.lines import LinesWidget
from cake_tui.tui.pane import Pane


class TabBar(LinesWidget):
    """All panes by number; those on screen are bold, the chosen one reversed."""

    def show(self, panes: Sequence[Pane], chosen: str, shown: Sequence[Pane], ascii: bool) -> None:  # noqa: A002
        """Draw the bar; names give way to numbers where they do not fit."""
        self.ascii = ascii
        names = [f" {pane.number} {pane.title} " for pane in panes]
        wide = sum(map(len, names)) <= self.size.width
        spans: list[tuple[str, str]] = []
        for pane, name in zip(panes, names):
            here = pane.pane_name == chosen
            text = name if wide or here else f" {pane.number} "
            spans.append((text, "focus!" if here else "strong" if pane in shown else "dim"))
        self.put([tuple(spans)])


class FootLine(LinesWidget):
    """One line: the main keys with their words, or a message in their place until it is old."""

    def show(self, replay: bool, message: tuple[str, str] | None, ascii: bool) -> None:  # noqa: A002
        """Draw keys or message."""
        self.ascii = ascii
        if message is not None:
            text, tone = message
            self.put([((" " + fmt.visible(text, 500), tone),)])
            return
        spans: list[tuple[str, str]] = [(" ", "")]
        room = self.size.width - 1
        for key in footer(replay):
            need = len(key.shown) + len(key.word) + 3
            if need > room:
                break
            spans += [(key.shown, "key"), (f" {key.word}  ", "dim")]
            room -= need
        line: Line = tuple(spans)
        self.put([line])
