"""A pane: a rule with number, title and a summary, below it lines that the pane makes from the view."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, NamedTuple

from textual import events
from textual.binding import Binding

from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line, Span
from cake_tui.tui.lines import LinesWidget
from cake_tui.tui.views import View


class Copied(NamedTuple):
    """What `y` copies: its name in words, the text, and the file that holds the same where there is one."""

    what: str
    text: str
    path: Path | None = None


class Pane(LinesWidget, can_focus=True):
    """One pane a file: subclass, give `order`, `title` and `help`, write `body`; ``PLUGIN`` is the class.

    `body` returns the lines of a view for a width and a height, already scrolled by `self.top` where it
    scrolls; it calls `self.window` for that. Keys of the pane are its ``BINDINGS``, its CSS its ``DEFAULT_CSS``.
    A pane in which ``/`` does something says in `finds` what: it filters by `self.sought`, or hands all its
    lines to `self.marked` before the window is cut.
    """

    order: ClassVar[int] = 99
    title: ClassVar[str] = ""
    help: ClassVar[str] = ""
    finds: ClassVar[str] = ""

    BINDINGS = [
        Binding("up,k", "scroll(-1)", "up", id="pane.up", show=False),
        Binding("down,j", "scroll(1)", "down", id="pane.down", show=False),
        Binding("pageup", "scroll_page(-1)", "page up", id="pane.pageup", show=False),
        Binding("pagedown", "scroll_page(1)", "page down", id="pane.pagedown", show=False),
        Binding("home,g", "to_end(0)", "first", id="pane.first", show=False),
        Binding("end,G", "to_end(1)", "last", id="pane.last", show=False),
        Binding("n", "next_hit(1)", "next hit", id="pane.next_hit", show=False),
        Binding("N", "next_hit(-1)", "previous hit", id="pane.previous_hit", show=False),
        Binding("escape", "back", "end the search", id="pane.back", show=False),
    ]

    def __init__(self, name: str, number: int) -> None:
        super().__init__(id=f"pane-{name}", classes="pane")
        self.pane_name = name
        self.number = number
        self.top = 0
        self.view: View | None = None
        self.sought = ""
        self._hits: list[int] = []
        self._hit = -1  # the hit that was gone to last

    # -- what a pane writes --------------------------------------------------------------------------

    def body(self, view: View, width: int, height: int) -> list[Line]:
        """Return the lines below the rule."""
        raise NotImplementedError

    def summary(self, view: View) -> Line:
        """Return what stands at the right end of the rule."""
        return ()

    def moved(self, by: int) -> bool:
        """Move the pane's own cursor, where it has one; false lets the pane scroll."""
        return False

    def escaped(self) -> None:
        """What esc does where nothing is sought."""

    def opened(self, view: View) -> int | None:
        """The candidate that enter opens; the chosen one, unless the pane shows another."""
        return view.selected

    def whole(self, view: View) -> list[Span] | None:
        """The text that enter opens in full where the pane is about no candidate: each with its tone."""
        return None

    def copied(self, view: View) -> Copied | None:
        """What `y` copies: the lines on screen, unless the pane knows better."""
        width, height = self.size
        lines = self.body(view, width, max(1, height - 1))
        return Copied(f"{self.title}, as it is on screen", "\n".join(_text(line).rstrip() for line in lines))

    # -- searching -----------------------------------------------------------------------------------

    def find(self, text: str) -> None:
        """Filter by a text, or go to its first place; an empty one ends it."""
        self.sought, self._hits, self._hit = text, [], self.top - 1
        self.draw()
        self.action_next_hit(1)

    def wants(self, text: str) -> bool:
        """Whether a filtering pane shows this: every word that is sought is in it, whatever the case."""
        folded = text.casefold()
        return all(word in folded for word in self.sought.casefold().split())

    def marked(self, lines: list[Line]) -> list[Line]:
        """Lines with what is sought reversed; remembers where it is, for the keys of the next and the last."""
        if not self.sought:
            return lines
        wanted = self.sought.casefold()
        out = list(lines)
        self._hits = [index for index, line in enumerate(lines) if wanted in _text(line).casefold()]
        for index in self._hits:
            out[index] = _reversed(lines[index], wanted)
        return out

    def _go_to(self, hit: int) -> None:
        room = max(1, self.size.height - 1)
        if not self.top <= hit < self.top + room:
            self.top = hit - room // 3
        self.draw()

    # -- drawing -------------------------------------------------------------------------------------

    def show(self, view: View) -> None:
        """Draw a view."""
        self.view, self.ascii = view, view.ascii
        self.draw()

    def draw(self) -> None:
        """Draw again what is there: after a key, a resize or a change of focus."""
        width, height = self.size
        if self.view is None or width < 1 or height < 1:
            return
        below = self.body(self.view, width, height - 1) if height > 1 else []
        self.put([self._rule(self.view, width), *below])

    def _rule(self, view: View, width: int) -> Line:
        dash, tone = ("━", "focus") if self.has_focus else ("─", "rule")
        head: Line = ((f"{dash} ", tone), (f"{self.number} {self.title}", "focus" if self.has_focus else "strong"))
        tail = self.summary(view)
        if self.sought:
            count = f" {len(self._hits)} found" if self._hits else ""
            tail = ((f"/{fmt.visible(self.sought, 24)}{count} · ", "accent"), *tail)
        used = fmt.width_of(head) + 1
        room = width - used - 3
        if tail and room >= 8:
            tail = tail if fmt.width_of(tail) <= room else fmt.fit(tail, room)
            gap = width - used - fmt.width_of(tail) - 3
            return (*head, (" " + dash * max(0, gap) + " ", tone), *tail, (f" {dash}", tone))
        return (*head, (" " + dash * max(0, width - used), tone))

    def window(self, total: int, height: int) -> range:
        """The slice of `total` lines that is on screen; keeps `top` within its bounds."""
        self.top = max(0, min(self.top, total - height))
        return range(self.top, min(total, self.top + height))

    # -- keys ----------------------------------------------------------------------------------------

    def action_scroll(self, by: int) -> None:
        """One line."""
        if not self.moved(by):
            self.top += by
        self.draw()

    def action_scroll_page(self, by: int) -> None:
        """One page."""
        page = max(1, self.size.height - 2)
        if not self.moved(by * page):
            self.top += by * page
        self.draw()

    def action_to_end(self, last: int) -> None:
        """First or last line."""
        far = 1 << 40 if last else -(1 << 40)
        if not self.moved(far):
            self.top += far
        self.draw()

    def action_next_hit(self, by: int) -> None:
        """The next place of what is sought, or the one before, round and round."""
        if self._hits:
            after = [hit for hit in self._hits if (hit > self._hit if by > 0 else hit < self._hit)]
            self._hit = (after or self._hits)[0 if by > 0 else -1]
            self._go_to(self._hit)

    def action_back(self) -> None:
        """End the search; without one, what the pane does on esc."""
        if self.sought:
            self.find("")
        else:
            self.escaped()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel scrolls three lines."""
        event.stop()
        self.action_scroll(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel scrolls three lines."""
        event.stop()
        self.action_scroll(-3)

    def on_focus(self) -> None:
        """The rule shows the focus, once the widget itself knows of it."""
        self.call_later(self.draw)

    def on_blur(self) -> None:
        """The rule shows the focus, once the widget itself knows of it."""
        self.call_later(self.draw)


def _text(line: Line) -> str:
    return "".join(text for text, _ in line)


def _reversed(line: Line, wanted: str) -> Line:
    """Reverse every place of a text that is casefolded, across spans; texts whose length folding changes as a whole."""
    text = _text(line)
    folded = text.casefold()
    if len(folded) != len(text):
        return tuple((piece, tone + "!") for piece, tone in line)
    hit = bytearray(len(text))
    at = folded.find(wanted)
    while at >= 0:
        hit[at : at + len(wanted)] = b"\1" * len(wanted)
        at = folded.find(wanted, at + len(wanted))
    out: list[tuple[str, str]] = []
    start = 0
    for piece, tone in line:
        begin = start
        for end in range(start + 1, start + len(piece) + 1):
            if end == start + len(piece) or hit[end] != hit[begin]:
                out.append((text[begin:end], tone + "!" * hit[begin]))
                begin = end
        start += len(piece)
    return tuple(out)
