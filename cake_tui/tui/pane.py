"""A pane: a rule with number, title and a summary, below it lines that the pane makes from the view."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding

from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line
from cake_tui.tui.lines import LinesWidget
from cake_tui.tui.views import View


class Pane(LinesWidget, can_focus=True):
    """One pane a file: subclass, give `order`, `title` and `help`, write `body`; ``PLUGIN`` is the class.

    `body` returns the lines of a view for a width and a height, already scrolled by `self.top` where it
    scrolls; it calls `self.window` for that. Keys of the pane are its ``BINDINGS``, its CSS its ``DEFAULT_CSS``.
    """

    order: ClassVar[int] = 99
    title: ClassVar[str] = ""
    help: ClassVar[str] = ""

    BINDINGS = [
        Binding("up,k", "scroll(-1)", "up", id="pane.up", show=False),
        Binding("down,j", "scroll(1)", "down", id="pane.down", show=False),
        Binding("pageup", "scroll_page(-1)", "page up", id="pane.pageup", show=False),
        Binding("pagedown", "scroll_page(1)", "page down", id="pane.pagedown", show=False),
        Binding("home,g", "to_end(0)", "first", id="pane.first", show=False),
        Binding("end,G", "to_end(1)", "last", id="pane.last", show=False),
    ]

    def __init__(self, name: str, number: int) -> None:
        super().__init__(id=f"pane-{name}", classes="pane")
        self.pane_name = name
        self.number = number
        self.top = 0
        self.view: View | None = None

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
        lines = [self._rule(self.view, width)]
        if height > 1:
            lines += self.body(self.view, width, height - 1)
        self.put(lines)

    def _rule(self, view: View, width: int) -> Line:
        dash, tone = ("━", "focus") if self.has_focus else ("─", "rule")
        head: Line = ((f"{dash} ", tone), (f"{self.number} {self.title}", "focus" if self.has_focus else "strong"))
        tail = self.summary(view)
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

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel scrolls three lines."""
        event.stop()
        self.action_scroll(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel scrolls three lines."""
        event.stop()
        self.action_scroll(-3)

    def on_focus(self) -> None:
        """The rule shows the focus."""
        self.draw()

    def on_blur(self) -> None:
        """The rule shows the focus."""
        self.draw()

    def on_resize(self) -> None:
        """Draw for the new size."""
        self.draw()
