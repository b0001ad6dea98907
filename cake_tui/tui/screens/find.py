"""Find: one line at the foot, typed into while the pane above filters or goes to the first place."""

from __future__ import annotations

from rich.highlighter import NullHighlighter
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.screen import ModalScreen
from textual.widgets import Input

from cake_tui.tui.lines import LinesWidget
from cake_tui.tui.pane import Pane

LONGEST = 200


class Find(ModalScreen[None], inherit_bindings=False):
    """Enter keeps what was typed, esc ends the search; the pane follows every letter."""

    DEFAULT_CSS = """
    Find { align: left bottom; }
    Find Horizontal { height: 1; background: ansi_default; }
    Find LinesWidget { width: auto; height: 1; background: ansi_default; }
    Find Input, Find Input:focus { border: none; height: 1; padding: 0; width: 1fr; background: ansi_default;
                                   color: ansi_default; }
    """

    BINDINGS = [Binding("escape", "leave", "end the search", show=False, priority=True)]

    def __init__(self, pane: Pane, ascii: bool = False) -> None:  # noqa: A002 the flag's own name
        super().__init__()
        self.pane = pane
        self.before = f" / {pane.finds}: "
        self.label = LinesWidget()
        self.label.ascii = ascii
        self.label.styles.width = len(self.before)
        self.input = Input(pane.sought, highlighter=NullHighlighter(), max_length=LONGEST, select_on_focus=False)
        self.input.cursor_blink = False

    def compose(self) -> ComposeResult:
        """What is looked for, and the field."""
        self.label.put([((self.before, "accentword"),)])
        yield Horizontal(self.label, self.input)

    def on_mount(self) -> None:
        """The field takes the keys."""
        self.input.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """The pane follows."""
        if event.value != self.pane.sought:
            self.pane.find(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Keep it."""
        self.dismiss(None)

    def action_leave(self) -> None:
        """End it."""
        self.pane.find("")
        self.dismiss(None)
