"""Help: keys that hold everywhere, keys of each pane, what the glyphs mean; made from the tables, it scrolls."""

from __future__ import annotations

from collections.abc import Sequence

from textual.binding import Binding

from cake_tui.model.ending import ENDINGS
from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line
from cake_tui.tui.keymap import FILE as KEYS_FILE
from cake_tui.tui.keymap import Keymap, shown
from cake_tui.tui.keys import here, own_keys
from cake_tui.tui.pane import Pane
from cake_tui.tui.screens.dialog import Dialog

KEYS_WIDE = 16


class Help(Dialog):
    """What can be pressed here: the chosen pane first; behind each key the id that ``keys.toml`` knows it by."""

    title_text = "help"

    BINDINGS = [Binding("question_mark,f1,q", "dismiss_dialog", "close", show=False)]

    def __init__(
        self,
        panes: Sequence[Pane],
        chosen: str,
        replay: bool,
        keymap: Keymap,
        ascii: bool = False,  # noqa: A002
    ) -> None:
        super().__init__(ascii)
        self.panes = sorted(panes, key=lambda pane: pane.pane_name != chosen)
        self.replay = replay
        self.keymap = keymap

    def lines(self, width: int) -> list[Line]:
        """All tables."""
        out = self._pane(self.panes[0], width)
        out += [(), ((" everywhere", "accentword"),)]
        for key in here(self.replay):
            out += self._key(key.id, key.keys, key.help, width)
        for pane in sorted(self.panes, key=lambda pane: pane.number):
            again = f"{pane.title}; again: over the whole screen"
            out += self._key(f"go.{pane.pane_name}", str(pane.number), again, width)
        for pane in self.panes[1:]:
            out += [(), *self._pane(pane, width)]
        out += [(), ((" within a pane", "accentword"), ("  mouse: click and wheel", "dim"))]
        for id, binding in own_keys(Pane).items():  # noqa: A001 Textual's name
            out += self._key(id, binding.key, binding.description, width)
        out += [(), ((" outcomes", "accentword"),)]
        for name, (glyph, _, word, tone) in fmt.OUTCOMES.items():
            told = fmt.wrap(ENDINGS[name].meaning, max(16, width - 24))
            out.append(((f"   {glyph}  ", tone), (fmt.pad(word, 15), ""), (told[0], "dim")))
            out += [((" " * 21 + more, "dim"),) for more in told[1:]]
        out += [(), ((" keys of your own", "accentword"),)]
        out += [((f"   {text}", ""),) for text in fmt.wrap(self._where(), max(10, width - 4))]
        out.append((('   lines such as  run.pause = "f2"  with the ids on the right', ""),))
        for mistake in self._mistakes():
            out += [((f"   {text}", "warn"),) for text in fmt.wrap(fmt.visible(mistake, 400), max(10, width - 4))]
        return out

    def _pane(self, pane: Pane, width: int) -> list[Line]:
        out: list[Line] = [((f" {pane.number} {pane.title}", "accentword"),)]
        out += [((f"   {text}", "dim"),) for text in fmt.wrap(pane.help, max(10, width - 4))]
        if pane.finds:
            out += self._key("screen.find", "slash", pane.finds, width)
        for id, binding in own_keys(type(pane)).items():  # noqa: A001 Textual's name
            out += self._key(id, binding.key, binding.description, width)
        return out

    def _key(self, id: str, default: str, text: str, width: int) -> list[Line]:  # noqa: A002 Textual's name
        keys = shown(self.keymap.keys(id, default))
        head = fmt.pad(f"   {keys}", KEYS_WIDE) if len(keys) < KEYS_WIDE - 4 else f"   {keys}  "
        room = width - len(head) - len(id) - 2
        if room < 16:  # the id has a line of its own
            told = fmt.wrap(text, max(10, width - len(head) - 1))
            lines: list[Line] = [((head, "strong"), (told[0], ""))]
            lines += [((" " * len(head), ""), (more, "")) for more in told[1:]]
            return [*lines, ((f"{' ' * len(head)}{id}", "dim"),)]
        told = fmt.wrap(text, max(16, room))
        first: Line = ((head, "strong"), (fmt.pad(told[0], max(16, room)), ""), (f" {id}", "dim"))
        return [first, *(((" " * len(head), ""), (more, "")) for more in told[1:])]

    def _where(self) -> str:
        folder = getattr(self.app, "settings", None)
        return fmt.visible(folder / KEYS_FILE, 400) if folder is not None else KEYS_FILE

    def _mistakes(self) -> tuple[str, ...]:
        return getattr(self.app, "mistakes", ())
