"""Inject: type a move, see completions, legal values and the refusal before it is sent; it goes in first."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

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
    """`send` gets the move as text once it is legal and returns why it was not sent; a refused one stays here too."""

    title_text = "inject a move"

    DEFAULT_CSS = """
    Inject > Vertical { max-height: 22; }
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

    def __init__(self, history: History, you: str, send: Callable[[str], str], ascii: bool = False) -> None:  # noqa: A002
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
        self.input = Input(placeholder="", id="move", highlighter=NullHighlighter())
        self.input.cursor_blink = False
        self.head = LinesWidget(id="head")
        self.head.ascii = ascii
        self.picked = 0
        self._chosen = ""  # with up and down; it stays the picked one wherever it comes to stand
        self._examples = self.moves.examples() if self.moves is not None else iter(())
        self.judged = Judgement(False, "", ())
        self.unsent = ""
        self._offered: list[str] = []

    def parts(self) -> list[Widget]:
        """Title and place, the field, the rest."""
        return [self.head, self.input, self.box]

    def draw(self) -> None:
        """Draw what stands above the field and what stands below."""
        width = self.head.size.width
        title = fmt.spread(((f" {self.title_text}", "focus"),), ((f"{self.hint()} ", "dim"),), width)
        self.head.put([title, self._where(), self._queue()])
        self.box.put(self.lines(self.box.size.width))
        self.set_timer(0.01, self._judge_one)

    def _judge_one(self) -> None:
        """Judge the next of the moves on offer that is not judged yet; keys come in between."""
        if self._judge_next():
            self.draw()

    def _judge_next(self) -> bool:
        """Judge one of what is offered, else of what may serve as an example; false where all is done."""
        if self.moves is None:
            return False
        for text in self._offered:
            if self.moves.known(text) is None:
                self.moves.judge(text)
                return True
        text = "" if self.input.placeholder else next(self._examples, "")
        if text:
            self.moves.judge(text)
            self.input.placeholder = self.moves.example(text)
        return bool(text)

    def settle(self) -> None:
        """Judge all that is offered at once (pictures are drawn of a settled screen)."""
        while self._judge_next():
            pass
        self.draw()

    def hint(self) -> str:
        """Keys."""
        return "enter inject  tab complete  ↑ ↓ choose  esc close"

    def on_mount(self) -> None:
        """The field takes the keys."""
        self.input.focus()

    def judge_again(self) -> None:
        """While somebody types, the queue moves on, and with a new incumbent what is legal may change."""
        if self.moves is not None:
            self.judged = self.moves.judge(self.input.value)
        self.draw()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Judge as it is typed."""
        if self.moves is not None:
            self.judged = self.moves.judge(event.value)
        self._chosen = self.unsent = ""
        self.draw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Send what is legal; of a move that is not whole yet, take the marked completion."""
        if self.moves is None:
            return
        self.judged = self.moves.judge(event.value)
        if self.judged.legal:
            self.unsent = self.send(self.judged.text)
            if self.unsent:
                self.draw()
            else:
                self.dismiss(None)
        elif self._unfinished():
            self.action_complete()
        else:
            self.draw()

    # Both wait for the field to take in what was typed before them: their keys overtake its own.

    def action_pick(self, by: int) -> None:
        """Another completion."""
        self.input.call_later(self.call_later, self._pick, by)

    def action_complete(self) -> None:
        """Take the marked completion; where it stands there already, the next one."""
        self.input.call_later(self.call_later, self._complete)

    def _pick(self, by: int) -> None:
        found = self._completions()
        if found:
            self.picked = (self.picked + by) % len(found)
            self._chosen = found[self.picked][0]
        self.draw()

    def _complete(self) -> None:
        found = self._completions()
        if not found:
            return
        self.picked = self._place([text for text, _ in found])
        text = found[self.picked % len(found)][0]
        if text == self.input.value and len(found) > 1:
            text = found[(self.picked + 1) % len(found)][0]
        self.input.value = text
        self.input.cursor_position = len(text)

    def lines(self, width: int) -> list[Line]:
        """The judgement, then completions with their values."""
        if self.moves is None:
            return [
                ((f" {fmt.visible(line)}", "bad"),)
                for line in ("no action can be read here:", *self.broken.splitlines())
            ]
        found = self._completions()
        texts = [text for text, _ in found]
        self.picked = self._place(texts)
        self._offered = [text for text in texts if text.endswith(")")]
        out: list[Line] = [(), *self._judgement(width), (), *self._values(found, width)]
        room = max(2, self.box.size.height - len(out))
        first = max(0, min(self.picked - room // 2, len(found) - room))
        shown = range(first, min(len(found), first + room))
        out += [self._completion(index, *found[index], width) for index in shown]
        return out if found else [*out, ((" no action begins like this", "dim"),)]

    def _completions(self) -> list[tuple[str, Action]]:
        return self.moves.completions(self.input.value) if self.moves is not None else []

    def _place(self, texts: list[str]) -> int:
        return texts.index(self._chosen) if self._chosen in texts else self._nearest(texts)

    def _nearest(self, found: list[str]) -> int:
        """The completion that begins most like what is typed, of those alike the first."""
        text = self.input.value
        alike = [sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(each, text))) for each in found]
        return alike.index(max(alike)) if alike else 0

    def _values(self, found: list[tuple[str, Action]], width: int) -> list[Line]:
        """The legal values of the action whose arguments are being typed."""
        action = found[0][1] if found and "(" in self.input.value.rpartition("+")[2] else None
        if action is None or not action.parameters:
            return []
        values = "; ".join(f"{p.name} {', '.join(map(spelled, p.values))}" for p in action.parameters)
        return [fmt.fit(((f" {fmt.visible(action.signature, 60)}", "strong"), (f"  {fmt.visible(values)}", "")), width)]

    def _where(self) -> Line:
        you = fmt.visible(self.you, 40)
        base = self.moves.base if self.moves is not None else None
        start = f"from the incumbent, #{base[0]} {base[1].text}" if base else "no incumbent to start from yet"
        return ((f" as {you}, {fmt.visible(start, 300)}", "dim"),)

    def _queue(self) -> Line:
        """What waits before it."""
        waiting = [f"{' + '.join(move.text for move in q.moves)} by {q.who}" for q in self.history.queue.values()]
        if not waiting:
            return ((" queue empty: it comes first in the next round", "dim"),)
        told = "  ".join(f"{place}. {fmt.visible(text, 80)}" for place, text in enumerate(waiting, 1))
        return ((" waiting before it  ", "dim"), (told, "accent"))

    def _judgement(self, width: int) -> list[Line]:
        if self.unsent:
            return _said(fmt.visible(self.unsent), width, "warn")
        if not self.judged.lines:
            return _said("type a move, or choose one below; join several with +", width)
        if not self.judged.legal and self._unfinished():
            return _said("not a whole move yet: tab or enter takes the marked one", width)
        tone, word = ("good", "legal") if self.judged.legal else ("bad", "refused")
        out: list[Line] = []
        for index, line in enumerate(self.judged.lines[:4]):
            for piece in fmt.wrap(fmt.visible(line, 800), max(10, width - 12)):
                head = fmt.pad(f" {word}" if not out else "", 10)
                out.append(((head, tone + "word"), (piece, tone if index == 0 else "")))
        instead = self.moves.instead(self.input.value) if self.moves is not None and not self.judged.legal else []
        if instead:
            out.append(((fmt.pad(" legal", 10), "goodword"), (fmt.visible(" or ".join(instead), 200), "")))
        return out

    def _unfinished(self) -> bool:
        """A name is being typed, or the values of one that exists."""
        word = self.input.value.rpartition("+")[2]
        return bool(self._completions()) and ")" not in word

    def _completion(self, index: int, text: str, action: Action, width: int) -> Line:
        mark = "!" if index == self.picked else ""
        last, room = text.rpartition("+")[2].strip(), min(33, max(16, width // 2))
        about: Line
        if "(" in self.input.value.rpartition("+")[2]:
            told = last if width >= 60 else last[len(action.name) :]
            name, about = fmt.pad(f"   {fmt.visible(told, 60)}", room - 1) + " ", ()
        else:
            name = fmt.pad(f" {fmt.visible(action.signature, 60)}", room - 1) + " "
            about = ((f"  {fmt.visible(self._about(action), 400)}", "dim" + mark),)
        answer = self._answer(text) if action.usable else (("-", "dim"),)
        spans = tuple((said, tone + mark) for said, tone in answer)
        line = fmt.fit(((name, ("strong" if action.usable else "dim") + mark), *spans, *about), width)
        return (*line[:-1], (line[-1][0], mark)) if line and not line[-1][0].strip() else line

    @staticmethod
    def _about(action: Action) -> str:
        if not action.usable:
            return action.refused or "disabled"
        values = "; ".join(f"{p.name} {', '.join(map(spelled, p.values))}" for p in action.parameters)
        return values or action.summary

    def _answer(self, text: str) -> Line:
        """The judgement of a whole move in short; none yet of one that needs values."""
        if self.moves is None or not text.endswith(")"):
            return ()
        judged = self.moves.known(text)
        if judged is None:
            return (("…", "dim"),)
        if judged.legal:
            return (("legal", "good"), (f"  {fmt.visible(judged.note, 80)}", ""))
        why = judged.lines[0] if judged.lines else ""
        return (("refused", "bad"), (f"  {fmt.visible(why, 200)}", "dim"))


def _said(text: str, width: int, tone: str = "dim") -> list[Line]:
    return [((f" {piece}", tone),) for piece in fmt.wrap(text, max(10, width - 2))]
