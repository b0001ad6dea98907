"""Log: one line an event, newest at the bottom; read from the journal only where it is on screen."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding

from cake_tui.model import layout
from cake_tui.model.event import MenuChanged
from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line, Span
from cake_tui.tui.pane import Copied, Pane
from cake_tui.tui.views import View
from cake_tui.tui.words import GROUPS, QUIET, told, toned

SHOWN = ("events", "everything", *GROUPS)
SEARCHED = 4_000  # events read in one go
WHOLE = 200  # lines that enter opens in full


class Log(Pane):
    """Follows the end; scrolled up, it stays where it is."""

    order: ClassVar[int] = 7
    title: ClassVar[str] = "log"
    help: ClassVar[str] = (
        "what happened, one line an event; scrolled up it stays, end follows again; enter shows the lines whole"
    )
    finds: ClassVar[str] = "filter by words"

    BINDINGS = [
        Binding("f", "filter(1)", f"only {', '.join(SHOWN[1:])}", id="log.filter"),
        Binding("F", "filter(-1)", "the filter before", id="log.filter_back", show=False),
    ]

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
        place += " · searching" if self._seen < view.cursor else ""
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

    def copied(self, view: View) -> Copied | None:
        """What is on screen, and the journal's own file."""
        found = super().copied(view)
        return None if found is None else found._replace(path=view.files.folder / layout.JOURNAL)

    def whole(self, view: View) -> list[Span]:
        """The lines until the last one on screen, as long as they are."""
        end = len(self._found) - self.back
        out: list[Span] = []
        for index in self._found[max(0, end - WHOLE) : end]:
            event = view.journal.event(index)
            if event is not None:
                tone, text = told(event, view.history)
                out.append((f"{fmt.clock(event.t)} {text}", tone))
        return out

    def moved(self, by: int) -> bool:
        """Up goes back in time."""
        self.back = max(0, min(len(self._found), self.back - by))
        return True

    def action_filter(self, by: int) -> None:
        """Another group of kinds."""
        self.kinds = SHOWN[(SHOWN.index(self.kinds) + by) % len(SHOWN)]
        self.back = 0
        self.draw()

    def _matching(self, view: View) -> list[int]:
        """Indices of the events shown, extended by what is new."""
        key = (id(view.journal), self.kinds, self.sought)
        if key != self._key or view.cursor < self._seen:
            self._key, self._seen, self._found = key, 0, []
            self._lines.clear()
        before = len(self._found)
        until = view.cursor if not self.sought else min(view.cursor, self._seen + SEARCHED)
        for index in range(self._seen, until):
            if self._wants(view, index) and (not self.sought or self.wants(self._text(view, index))):
                self._found.append(index)
        self._seen = until
        if until < view.cursor:
            self.call_later(self.draw)  # the rest of a long record in slices, so that keys still answer
        if self.back:
            self.back += len(self._found) - before
        return self._found

    def _wants(self, view: View, index: int) -> bool:
        kind = view.journal.kind(index)
        if self.kinds == "everything":
            return True
        if self.kinds == "trouble" and kind == "MenuChanged":  # an edit that is taken is none
            event = view.journal.event(index)
            return isinstance(event, MenuChanged) and event.refused is not None
        return kind not in QUIET if self.kinds == "events" else kind in GROUPS[self.kinds]

    def _text(self, view: View, index: int) -> str:
        event = view.journal.event(index)
        return "" if event is None else f"{fmt.clock(event.t)} {toned(event, view.history)[1]}"

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
