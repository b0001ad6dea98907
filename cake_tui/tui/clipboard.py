"""The terminal's clipboard, over SSH too: one escape sequence (OSC 52), and the file that holds the same text."""

from __future__ import annotations

from textual.app import App

from cake_tui import figures
from cake_tui.tui import format as fmt
from cake_tui.tui.pane import Copied

LARGEST = 74_000  # bytes; what most terminals take in one escape sequence


def copy(app: App[int], copied: Copied) -> tuple[str, str]:
    """Give a text to the terminal; returns what to say and its tone.

    A terminal that ignores the sequence says nothing, so the file that holds the same is named.
    """
    text = copied.text.encode("utf-8", "replace").decode("utf-8")
    size = len(text.encode("utf-8"))
    where = f"; it is in {fmt.visible(copied.path, 300)}" if copied.path is not None else ""
    if size > LARGEST:
        return f"{copied.what}: {figures.count(size)} bytes are more than terminals take{where}", "warn"
    app.copy_to_clipboard(text)
    return f"{copied.what}: {figures.count(size)} bytes sent to the clipboard (OSC 52){where}", "good"
