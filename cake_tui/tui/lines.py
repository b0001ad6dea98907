"""The widget all panes are: it is given lines, compares them with those on screen and repaints what differs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line
from cake_tui.tui.palette import style


class LinesWidget(Widget):
    """Draws lines given by `put`; nothing is sent for a line that stays the same, nor for a line's unchanged end.

    Textual repaints a widget's whole rectangle on `refresh()`; here only changed cells are marked.
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 Textual's name
        super().__init__(id=id, classes=classes)
        self._given: Sequence[Line] = ()
        self._on_screen: list[Line] = []
        self._drawn_size = Size(0, 0)
        self.ascii = False

    def put(self, lines: Sequence[Line]) -> None:
        """Show these lines, cut and filled to the widget's size."""
        self._given = lines
        width, height = self.size
        lines = [self._spelled(line) for line in lines[:height]]
        fitted = [self._spelled(fmt.fit(line, width)) for line in lines]  # again: fitting marks what it cuts
        blank: Line = ((" " * width, ""),)
        fitted += [blank] * (height - len(fitted))
        before, same_size = self._on_screen, self._drawn_size == self.size
        self._on_screen, self._drawn_size = fitted, self.size
        if not same_size or len(before) != len(fitted):
            self.refresh()
            return
        dirty = [
            Region(*_changed(old, new, width, y)) for y, (old, new) in enumerate(zip(before, fitted)) if old != new
        ]
        if dirty:
            self.refresh(*dirty)

    def draw(self) -> None:
        """Draw again what was put."""
        self.put(self._given)

    def on_resize(self) -> None:
        """Draw for the new size: the first one, too, may come only after the lines."""
        self.draw()

    def _spelled(self, line: Line) -> Line:
        return tuple((fmt.ascii_only(text), tone) for text, tone in line) if self.ascii else line

    def render_line(self, y: int) -> Strip:
        """Return one line's strip."""
        width = self.size.width
        if y >= len(self._on_screen) or self._drawn_size != self.size:
            return Strip.blank(width)
        light = bool(getattr(self.app, "light", False))
        return Strip([Segment(text, style(tone, light)) for text, tone in self._on_screen[y]], width)


def _changed(old: Line, new: Line, width: int, y: int) -> tuple[int, int, int, int]:
    """(x, y, width, height) of the cells that differ, by whole spans from the left and from the right."""
    first = 0
    for before, after in zip(old, new):
        if before != after:
            break
        first += fmt.width_of((after,))
    last = width
    for before, after in zip(reversed(old), reversed(new)):
        if before != after:
            break
        last -= fmt.width_of((after,))
    if last <= first:
        first, last = 0, width
    return first, y, last - first, 1
