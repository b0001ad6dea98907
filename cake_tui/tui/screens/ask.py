"""Ask: one line of text, sent with enter."""

from __future__ import annotations

from collections.abc import Callable

from rich.highlighter import NullHighlighter
from textual.binding import Binding
from textual.widget import Widget
from textual.widgets import Input

from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line
from cake_tui.tui.screens.dialog import Dialog

LONGEST = 500
WIDEST = 128  # columns of a dialog


class Ask(Dialog):
    """`send` gets the text, stripped, and returns why it is refused; a refused or empty one stays here to be mended."""

    DEFAULT_CSS = """
    Ask > Vertical { height: auto; max-height: 100%; }
    Ask Input { border: none; height: 1; padding: 0 1; background: ansi_default; color: ansi_default; }
    Ask Input:focus { border: none; background: ansi_default; }
    """

    BINDINGS = [Binding("escape", "dismiss_dialog", "close", show=False, priority=True)]

    def __init__(
        self,
        title: str,
        about: str,
        send: Callable[[str], str],
        ascii: bool = False,  # noqa: A002 the flag's own name
        enter: str = "enter send",
    ) -> None:
        super().__init__(ascii)
        self.heading = title
        self.about = about
        self.send = send
        self.enter = enter
        self.refused = ""
        self.input = Input(id="text", highlighter=NullHighlighter(), max_length=LONGEST)
        self.input.cursor_blink = False

    def parts(self) -> list[Widget]:
        """What it is, and the field."""
        return [self.box, self.input]

    def caption(self) -> str:
        """What is asked for."""
        return self.heading

    def hint(self) -> str:
        """Keys."""
        return f"{self.enter}  esc close"

    def lines(self, width: int) -> list[Line]:
        """Why the last text was refused, then what it is for."""
        told = [(self.refused, "warn")] if self.refused else []
        return [
            ((f" {piece}", tone),)
            for text, tone in (*told, (self.about, "dim"))
            for piece in fmt.wrap(fmt.visible(text, 500), max(10, width - 2))
        ]

    def on_mount(self) -> None:
        """The field takes the keys."""
        self._fit()
        self.input.focus()

    def on_resize(self) -> None:
        """As high as what is asked, at most as the terminal with the field."""
        self._fit()

    def _fit(self) -> None:
        width, height = self.app.size
        self.box.styles.height = max(1, min(1 + len(self.lines(min(width, WIDEST) - 2)), height - 3))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Send and close; what is refused stays: keys typed after it must not become commands."""
        text = event.value.strip()
        self.refused = self.send(text) if text else "nothing is typed yet; esc closes"
        if self.refused:
            self._fit()
            self.draw()
        else:
            self.dismiss(None)
