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
    """`send` gets the text, stripped; an empty one is not sent."""

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
        send: Callable[[str], None],
        ascii: bool = False,  # noqa: A002 the flag's own name
        enter: str = "enter send",
    ) -> None:
        super().__init__(ascii)
        self.heading = title
        self.about = about
        self.send = send
        self.enter = enter
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
        """What it is for."""
        return [((f" {text}", "dim"),) for text in fmt.wrap(fmt.visible(self.about, 500), max(10, width - 2))]

    def on_mount(self) -> None:
        """The field takes the keys."""
        self._fit()
        super().on_mount()
        self.input.focus()

    def on_resize(self) -> None:
        """As high as what is asked, at most as the terminal with the field."""
        self._fit()
        super().on_resize()

    def _fit(self) -> None:
        width, height = self.app.size
        self.box.styles.height = max(1, min(1 + len(self.lines(min(width, WIDEST) - 2)), height - 3))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Send and close."""
        text = event.value.strip()
        if text:
            self.send(text)
        self.dismiss(None)
