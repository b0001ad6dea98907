"""The exact feedback JSON of a candidate, byte for byte but for control characters, and where its file is."""

from __future__ import annotations

from textual.binding import Binding

from cake_tui.tui import format as fmt
from cake_tui.tui.clipboard import copy
from cake_tui.tui.files import Text
from cake_tui.tui.format import Line
from cake_tui.tui.pane import Copied
from cake_tui.tui.screens.dialog import Dialog


class Exact(Dialog):
    """A text file as it is."""

    title_text = "exact JSON"

    BINDINGS = [
        Binding("J,q", "dismiss_dialog", "close", show=False),
        Binding("y", "copy", "copy to the clipboard (OSC 52)", show=False),
    ]

    def __init__(self, number: int, found: Text | None, ascii: bool = False) -> None:  # noqa: A002
        super().__init__(ascii)
        self.number = number
        self.found = found
        self.said = ""

    def hint(self) -> str:
        """Keys."""
        return "y copy  esc close"

    def lines(self, width: int) -> list[Line]:
        """Path, then the text."""
        if self.found is None:
            return [((f" #{self.number} has no feedback file", "dim"),)]
        out: list[Line] = [((f" {fmt.visible('/'.join(self.found.path.parts[-4:]), 400)}", "dim"),)]
        if self.said:
            out = [((f" {text}", "good"),) for text in fmt.wrap(self.said, max(10, width - 2))]
        for line in self.found.text.splitlines():
            shown = fmt.visible(line, 20_000)
            out.append(((f" {shown[self.left :]}", ""),))
        return out

    def action_copy(self) -> None:
        """Give the text to the terminal's clipboard."""
        if self.found is not None:
            copied = Copied(f"feedback of #{self.number}", self.found.text, self.found.path)
            self.said, _ = copy(self.app, copied)
            self.draw()
