"""Log: one line an event, newest at the bottom; read from the journal only where it is on screen."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding

from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line
from cake_tui.tui.pane import Pane
from cake_tui.tui.views import View
from cake_tui.tui.words import GROUPS, QUIET, toned

SHOWN = ("events", "everything", *GROUPS)


class Log(Pane):
    """Follows the end; scrolled up, it stays where it is."""

    order: ClassVar[int] = 7
    title: ClassVar[str] = "log"
    help: ClassVar[str] = "what happened; f narrows it to decisions, people or trouble; end follows again"

    BINDINGS = [Binding("f", "filter", "kinds shown", id="log.filter")]

    def __init__(self, name: str, number: int) -> None:
        super().__init__(name, number)
        self.kinds = "events"
        self.back = 0  # lines above the end; 0 follows it
        self._seen = 0
        self._found: list[int] = []
        self._key: object = None
        self._lines: dict[int, Line] = {}

    def summary(self, view: View) -> Line:
        """Filter and position."""
        place = f" · {self.back} back" if self.back else ""
        return ((f"{self.kinds}{place} · UTC", "dim"),)

    def body(self, view: View, width: int, height: int) -> list[Line]:
        """The window's events."""
        found = self._matching(view)
        self.back = max(0, min(self.back, len(found) - height))
        end = len(found) - self.back
        window = found[max(0, end - height) : end]
        if len(self._lines) > 4 * height + 64:
            self._lines.clear()
        return [self._line(view, index) for index in window] or [((" nothing yet", "dim"),)]

    def moved(self, by: int) -> bool:
        """Up goes back in time."""
        self.back = max(0, min(len(self._found), self.back - by))
        return True

    def action_filter(self) -> None:
        """Next group of kinds."""
        self.kinds = SHOWN[(SHOWN.index(self.kinds) + 1) % len(SHOWN)]
        self.back = 0
        self.draw()

    def _matching(self, view: View) -> list[int]:
        """Indices of the events shown, extended by what is new."""
        key = (id(view.journal), self.kinds)
        if key != self._key or view.cursor < self._seen:
            self._key, self._seen, self._found = key, 0, []
            self._lines.clear()
        journal = view.journal
        before = len(self._found)
        for index in range(self._seen, view.cursor):
            if self._wants(journal.kind(index)):
                self._found.append(index)
        self._seen = view.cursor
        if self.back:
            self.back += len(self._found) - before
        return self._found

    def _wants(self, kind: str) -> bool:
        if self.kinds == "everything":
            return True
        return kind not in QUIET if self.kinds == "events" else kind in GROUPS[self.kinds]

    def _line(self, view: View, index: int) -> Line:
        known = self._lines.get(index)
        if known is None:
            event = view.journal.event(index)
            if event is None:
                return (("  (not readable any more)", "dim"),)
            tone, text = toned(event, view.history)
            known = self._lines[index] = ((f" {fmt.clock(event.t)} ", "dim"), (text, tone))
        return known


PLUGIN: type[Pane] = Log
