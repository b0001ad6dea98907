"""Inject: type a move, see completions, legal values and the refusal before it is sent; it goes in first."""

from __future__ import annotations

from collections.abc import Callable

from rich.highlighter import NullHighlighter
from textual.binding import Binding
from textual.widget import Widget
from textual.widgets import Input

from cake_tui.errors import UserError
from cake_tui.menu import Action
from cake_tui.menu.action import spelled
from cake_tui.model.history import History
from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line
from cake_tui.tui.lines import LinesWidget
from cake_tui.tui.moves import Judgement, Moves
from cake_tui.tui.screens.dialog import Dialog


class Inject(Dialog):
    """`send` gets the move as text once it is legal; a refused one stays here with its reason."""

    title_text = "inject a move"

    DEFAULT_CSS = """
    Inject > Vertical { max-height: 18; }
    Inject Input { border: none; height: 1; padding: 0 1; background: ansi_default; color: ansi_default; }
    Inject Input:focus { border: none; background: ansi_default; }
    Inject #head { height: 3; }
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
        self.head = LinesWidget(id="head")
        self.head.ascii = ascii
        self.picked = 0
        self.judged = Judgement(False, "", ())
        self._judged_from = history.incumbent

    def parts(self) -> list[Widget]:
        """Title and place, the field, the rest."""
        return [self.head, self.input, self.box]

    def draw(self) -> None:
        """Draw what stands above the field and what stands below."""
        width = self.head.size.width
        title = fmt.spread(((f" {self.title_text}", "focus"),), ((f"{self.hint()} ", "dim"),), width)
        self.head.put([title, self._where(), ()])
        self.box.put(self.lines(self.box.size.width))

    def hint(self) -> str:
        """Keys."""
        return "enter inject  tab complete  esc close"

    def on_mount(self) -> None:
        """The field takes the keys."""
        super().on_mount()
        self.input.focus()

    def judge_again(self) -> None:
        """The incumbent moved while somebody types: what is legal from it may have changed."""
        incumbent = self.history.incumbent
        if incumbent != self._judged_from and self.moves is not None:
            self._judged_from = incumbent
            self.judged = self.moves.judge(self.input.value)
            self.draw()

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
        """The judgement, then completions with their values."""
        if self.moves is None:
            return [
                ((f" {fmt.visible(line)}", "bad"),)
                for line in ("no action can be read here:", *self.broken.splitlines())
            ]
        out: list[Line] = [(), *self._judgement(width), ()]
        found = self._completions()
        room = max(2, self.box.size.height - len(out))
        first = max(0, min(self.picked - room // 2, len(found) - room))
        out += [
            self._completion(index, found[index][1], width) for index in range(first, min(len(found), first + room))
        ]
        return out if found else [*out, ((" no action begins like this", "dim"),)]

    def _completions(self) -> list[tuple[str, Action]]:
        return self.moves.completions(self.input.value) if self.moves is not None else []

    def _where(self) -> Line:
        waiting = len(self.history.queue)
        place = "first in the next round" if not waiting else f"after {waiting} waiting"
        if self.moves is None:
            return ((f" as {fmt.visible(self.you, 40)}", "dim"),)
        base = self.moves.base
        start = f"from the incumbent, #{base[0]} {base[1].text}" if base else "no incumbent yet"
        return ((f" as {fmt.visible(self.you, 40)}, {place}, {fmt.visible(start, 300)}", "dim"),)

    def _judgement(self, width: int) -> list[Line]:
        if not self.judged.lines:
            return [((" type a move, or choose one below; join several with +", "dim"),)]
        if not self.judged.legal and self._unfinished():
            return [((" not a whole move yet: tab takes the marked name, then its values", "dim"),)]
        tone, word = ("good", "legal") if self.judged.legal else ("bad", "refused")
        out: list[Line] = []
        for index, line in enumerate(self.judged.lines[:6]):
            for piece in fmt.wrap(fmt.visible(line, 800), max(10, width - 12)):
                head = fmt.pad(f" {word}" if not out else "", 10)
                out.append(((head, tone + "word"), (piece, tone if index == 0 else "")))
        return out

    def _unfinished(self) -> bool:
        """A name is being typed, or the values of one that exists."""
        word = self.input.value.rpartition("+")[2]
        return bool(self._completions()) and ")" not in word

    def _completion(self, index: int, action: Action, width: int) -> Line:
        mark = "!" if index == self.picked else ""
        values = "; ".join(f"{p.name} {', '.join(map(spelled, p.values))}" for p in action.parameters)
        why = "" if action.usable else f"  {action.refused or 'disabled'}"
        text = (
            f"{fmt.visible(values, 200)}{fmt.visible(why, 200)}" if values or why else fmt.visible(action.summary, 200)
        )
        name = fmt.pad(f" {fmt.visible(action.signature, 60)}", 34)
        return fmt.fit(((name, ("strong" if action.usable else "dim") + mark), (f" {text}", "dim" + mark)), width)
