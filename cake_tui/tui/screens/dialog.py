"""A dialog: a ruled box of lines over the panes, closed by esc; inject, help, exact JSON and questions are such."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widget import Widget

from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line
from cake_tui.tui.lines import LinesWidget


class Box(LinesWidget):
    """A dialog's lines, made for the box's width."""

    def draw(self) -> None:
        """Let the dialog draw: with the size, what it says may be broken and cut elsewhere."""
        if isinstance(self.screen, Dialog):
            self.screen.draw()


class Dialog(ModalScreen[None], inherit_bindings=False):
    """Subclasses give `title`, `lines` and keys; the box takes what the terminal has, at most 128 columns."""

    title_text: ClassVar[str] = ""

    DEFAULT_CSS = """
    Dialog { align: center middle; }
    Dialog > Vertical { background: ansi_default; border: round ansi_cyan; width: 100%; max-width: 128; height: 100%; }
    Dialog.ascii > Vertical { border: ascii ansi_cyan; }
    Dialog LinesWidget { height: 1fr; background: ansi_default; }
    """

    BINDINGS = [
        Binding("escape", "dismiss_dialog", "close", id="dialog.close"),
        Binding("ctrl+l", "app.redraw", "redraw", id="screen.redraw", show=False, priority=True),
        Binding("up,k", "scroll(-1)", "up", show=False),
        Binding("down,j", "scroll(1)", "down", show=False),
        Binding("pageup", "scroll_page(-1)", "page up", show=False),
        Binding("pagedown,space", "scroll_page(1)", "page down", show=False),
        Binding("home,g", "scroll(-1000000)", "first", show=False),
        Binding("end,G", "scroll(1000000)", "last", show=False),
        Binding("left,h", "sideways(-16)", "left", show=False),
        Binding("right,l", "sideways(16)", "right", show=False),
    ]

    def __init__(self, ascii: bool = False) -> None:  # noqa: A002 the flag's own name
        super().__init__()
        self.top = 0
        self.left = 0
        self.box = Box(id="box")
        self.box.ascii = ascii
        self.set_class(ascii, "ascii")

    def parts(self) -> list[Widget]:
        """Widgets of the box from top to bottom."""
        return [self.box]

    def compose(self) -> ComposeResult:
        """The box."""
        yield Vertical(*self.parts())

    def lines(self, width: int) -> list[Line]:
        """What the box says."""
        raise NotImplementedError

    def caption(self) -> str:
        """The title."""
        return self.title_text

    def hint(self) -> str:
        """Keys, at the end of the rule."""
        return "esc close"

    def draw(self) -> None:
        """Draw title, keys and lines from `top`."""
        width, height = self.box.size
        if width < 1 or height < 1:
            return
        rule = fmt.spread(((f" {self.caption()}", "focus"),), ((f"{self.hint()} ", "dim"),), width)
        found = self.lines(width)
        self.top = max(0, min(self.top, len(found) - (height - 1)))
        self.box.put([rule, *found[self.top : self.top + height - 1]])

    def action_dismiss_dialog(self) -> None:
        """Close."""
        self.dismiss(None)

    def action_scroll(self, by: int) -> None:
        """Some lines."""
        self.top = max(0, self.top + by)
        self.draw()

    def action_scroll_page(self, by: int) -> None:
        """One page."""
        self.action_scroll(by * max(1, self.box.size.height - 2))

    def action_sideways(self, by: int) -> None:
        """Long lines."""
        self.left = max(0, self.left + by)
        self.draw()
