"""The line over a replay: where it is in the record, the wins and what people did; a click goes there."""

from __future__ import annotations

from textual import events

from cake_tui.tui import format as fmt
from cake_tui.tui.lines import LinesWidget
from cake_tui.tui.replay import ReplayBridge

LEGEND = "● win  ▲ person"


class Timeline(LinesWidget):
    """One line as wide as the screen; every cell stands for as many events."""

    DEFAULT_CSS = "Timeline { height: 1; }"

    def __init__(self) -> None:
        super().__init__(id="timeline")
        self.record: ReplayBridge | None = None

    def show(self, record: ReplayBridge, ascii: bool) -> None:  # noqa: A002 the flag's own name
        """Draw where the cursor is."""
        self.record, self.ascii = record, ascii
        width = self._width()
        if width < 4:
            self.put([])
            return
        moments, total = record.moments, max(1, len(record.moments))
        here = min(width - 1, record.cursor * width // total)
        cells = [("━" if column < here else "─", "accent" if column < here else "dim") for column in range(width)]
        for cursors, glyph, tone in ((moments.wins, "●", "good"), (moments.people, "▲", "accentword")):
            for cursor in cursors:
                cells[min(width - 1, cursor * width // total)] = (glyph, tone)
        cells[here] = ("┃", "strong!")
        self.put([((" ", ""), *cells, ("  " + LEGEND if self._legend() else "", "dim"))])

    def on_click(self, event: events.Click) -> None:
        """Go to the clicked share of the record."""
        width = self._width()
        if self.record is not None and 1 <= event.x <= width:
            self.record.seek((event.x - 1) * len(self.record.moments) // max(1, width - 1))
            self.app.choose(None)  # type: ignore[attr-defined]

    def _legend(self) -> bool:
        return self.size.width >= 60

    def _width(self) -> int:
        return self.size.width - 2 - (fmt.width_of(((LEGEND, ""),)) + 2 if self._legend() else 0)
