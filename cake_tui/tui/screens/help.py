"""Help: keys that hold everywhere, keys of each pane, what the glyphs mean; made from the tables, it scrolls."""

from __future__ import annotations

from collections.abc import Sequence

from textual.binding import Binding

from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line
from cake_tui.tui.keys import KEYS
from cake_tui.tui.pane import Pane
from cake_tui.tui.screens.dialog import Dialog

_NAMES = {
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "question_mark": "?",
    "colon": ":",
    "plus": "+",
    "minus": "-",
}


class Help(Dialog):
    """What can be pressed here."""

    title_text = "help"

    BINDINGS = [Binding("question_mark,f1,q", "dismiss_dialog", "close", show=False)]

    def __init__(self, panes: Sequence[Pane], replay: bool, ascii: bool = False) -> None:  # noqa: A002
        super().__init__(ascii)
        self.panes = panes
        self.replay = replay

    def lines(self, width: int) -> list[Line]:
        """All tables."""
        out: list[Line] = [((" everywhere", "accentword"),)]
        out += [
            _key(key.keys, key.help, width)
            for key in KEYS
            if key.where in ("both", "replay" if self.replay else "live")
        ]
        out.append(_key(f"1 to {len(self.panes)}", "a pane; again: over the whole screen", width))
        for pane in self.panes:
            out += [((f" {pane.number} {pane.title}", "accentword"), (f"  {pane.help}", "dim"))]
            own = [b for b in type(pane).BINDINGS if isinstance(b, Binding) and (b.id or "").startswith(pane.pane_name)]
            out += [_key(binding.key, binding.description, width) for binding in own]
        out.append(((" up down pgup pgdn home end, j k g G: move within a pane; mouse: click and wheel", "dim"),))
        out.append(((" outcomes", "accentword"),))
        for glyph, _, word, tone in fmt.OUTCOMES.values():
            out.append(((f"   {glyph}  ", tone), (word, "")))
        return out


def _key(keys: str, text: str, width: int) -> Line:
    shown = " ".join(_NAMES.get(key, key) for key in keys.split(","))
    return ((fmt.pad(f"   {shown}", 18), "strong"), (fmt.clip(text, max(1, width - 18)), ""))
