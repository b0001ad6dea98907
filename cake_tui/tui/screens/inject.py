"""Inject: type a move, see completions, legal values and the refusal before it is sent; it goes in first."""

from __future__ import annotations

from collections.abc import Callable

from rich.highlighter import NullHighlighter
from textual.binding import Binding
from textual.widget import Widget
from textual.widgets import Input

from cake_tui.errors import UserError
from cake_tui.menu.action import spelled
from cake_tui.model.history import History
from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line
from cake_tui.tui.moves import Judgement, Moves
from cake_tui.tui.screens.dialog import Dialog


class Inject(Dialog):
    """`send` gets the move as text once it is legal; a refused one stays here with its reason."""

    title_text = "inject a move"

    DEFAULT_CSS = """
    Inject Input { border: none; height: 1; padding: 0 1; background: ansi_default; color: ansi_default; }
    Inject Input:focus { border: none; background: ansi_default; }
    Inject #prompt { height: 1; }
    """

    BINDINGS = [
        Binding("up", "pick(-1)", "previous", show=False, priority=True),
        Binding("down", "pick(1)", "next", show=False, priority=True),
        Binding("tab", "complete", "complete", show=False, priority=True),
        Binding("escape", "dismiss_dialog", "close", show=False, priority=True),
    ]

    def __init__(self, history: History, you: str, send: Callable[[str], None], ascii: bool = False) -> None:  # noqa: A002
        super().__init__(ascii)
        self.history = history
        self.you = you
        self.send = send
        self.moves: Moves | None = None
        self.broken = ""
        try:
            self.moves = Moves(history)
        except UserError as error:
            self.broken = str(error)
        self.input = Input(placeholder="apply_register_block(4, 8)", id="move", highlighter=NullHighlighter())
        self.input.cursor_blink = False
        self.picked = 0
        self.judged = Judgement(False, "", ())

    def parts(self) -> list[Widget]:
        """The field between the rule and the rest would split the box: the field goes last."""
        return [self.box, self.input]

    def hint(self) -> str:
        """Keys."""
        return "enter inject  tab complete  esc close"

    def on_mount(self) -> None:
        """The field takes the keys."""
        super().on_mount()
        self.input.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Judge as it is typed."""
        self.picked = 0
        if self.moves is not None:
            self.judged = self.moves.judge(event.value)
        self.draw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Send what is legal; of a name that is not finished, complete it."""
        if self.moves is None:
            return
        self.judged = self.moves.judge(event.value)
        if self.judged.legal:
            self.send(self.judged.text)
            self.dismiss(None)
            return
        self.draw()

    def action_pick(self, by: int) -> None:
        """Another completion."""
        found = self._completions()
        if found:
            self.picked = (self.picked + by) % len(found)
        self.draw()

    def action_complete(self) -> None:
        """Take the chosen completion."""
        found = self._completions()
        if found and "(" not in self.input.value.rpartition("+")[2]:
            self.input.value = found[self.picked % len(found)][0]
            self.input.cursor_position = len(self.input.value)

    def lines(self, width: int) -> list[Line]:
        """Where it goes, the judgement, the completions with their values; the field is below."""
        if self.moves is None:
            return [
                ((f" {fmt.visible(line)}", "bad"),)
                for line in ("no action can be read here:", *self.broken.splitlines())
            ]
        out = [self._where(), (), *self._judgement(width), ()]
        height = max(3, self.box.size.height - 1 - len(out))
        found = self._completions()
        first = max(0, min(self.picked - height // 2, len(found) - height))
        for index in range(first, min(len(found), first + height)):
            out += self._completion(index, width)
        if not found:
            out.append(((" no action begins like this", "dim"),))
        return out[: self.box.size.height - 1] if height > 3 else out

    def _completions(self) -> list[tuple[str, object]]:
        return list(self.moves.completions(self.input.value)) if self.moves is not None else []

    def _where(self) -> Line:
        waiting = len(self.history.queue)
        place = "first in the next round" if not waiting else f"after {waiting} waiting"
        base = self.moves.base if self.moves is not None else None
        start = f"from the incumbent, #{base[0]} {base[1].text}" if base else "no incumbent yet"
        return ((f" as {fmt.visible(self.you, 40)}, {place}, {fmt.visible(start, 300)}", "dim"),)

    def _judgement(self, width: int) -> list[Line]:
        if not self.judged.lines:
            return [((" type a move, or choose one below; join several with +", "dim"),)]
        tone, word = ("good", "legal") if self.judged.legal else ("bad", "refused")
        out: list[Line] = []
        for index, line in enumerate(self.judged.lines[:6]):
            for piece in fmt.wrap(fmt.visible(line, 800), max(10, width - 12)):
                head = fmt.pad(f" {word}" if not out else "", 10)
                out.append(((head, tone + "word"), (piece, tone if index == 0 else "")))
        return out

    def _completion(self, index: int, width: int) -> list[Line]:
        assert self.moves is not None
        _, action = self.moves.completions(self.input.value)[index]
        mark = "!" if index == self.picked else ""
        tone = "" if action.usable else "dim"
        values = "; ".join(f"{p.name} {', '.join(map(spelled, p.values))}" for p in action.parameters)
        why = "" if action.usable else f"  {action.refused or 'disabled'}"
        name = fmt.pad(f" {fmt.visible(action.signature, 60)}", 34)
        text = (
            f"{fmt.visible(values, 200)}{fmt.visible(why, 200)}" if values or why else fmt.visible(action.summary, 200)
        )
        return [fmt.fit(((name, (tone or "strong") + mark), (f" {text}", "dim" + mark)), width)]
