"""Switch: the action space with what each action has brought; space asks the run to use it or to leave it alone."""

from __future__ import annotations

from collections.abc import Callable

from textual.binding import Binding

from cake_tui import figures
from cake_tui.errors import UserError
from cake_tui.menu import Action
from cake_tui.model.history import History
from cake_tui.model.row import Tally
from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line
from cake_tui.tui.moves import Moves
from cake_tui.tui.screens.dialog import Dialog

NO_TALLY = Tally()


class Switch(Dialog):
    """`send` gets ("enable" or "disable", an action's name), returns why nothing was sent; the journal answers."""

    title_text = "actions"

    BINDINGS = [
        Binding("a,q", "dismiss_dialog", "close", show=False),
        Binding("up,k", "pick(-1)", "up", show=False),
        Binding("down,j", "pick(1)", "down", show=False),
        Binding("space,enter", "switch", "enable or disable", show=False),
    ]

    def __init__(self, history: History, send: Callable[[str, str], str], ascii: bool = False) -> None:  # noqa: A002
        super().__init__(ascii)
        self.history = history
        self.send = send
        self.asked: dict[str, str] = {}
        self.picked = 0
        self.actions: list[Action] = []
        self.broken = ""
        self.unsent = ""
        try:
            self.actions = sorted(Moves(history).menu.actions, key=self._place)
        except UserError as error:
            self.broken = str(error)

    def hint(self) -> str:
        """Keys."""
        return "space enable or disable  esc close"

    def lines(self, width: int) -> list[Line]:
        """An action a line, then what the chosen one does."""
        if self.broken:
            return [((f" {fmt.visible(line)}", "bad"),) for line in self.broken.splitlines()]
        head = f" {fmt.pad('', 12)} {fmt.pad('action', 34)}{fmt.pad('weight', 8, True)}{fmt.pad('tries', 8, True)}"
        out: list[Line] = [((head + fmt.pad("wins", 7, True), "dim"),)]
        out += [self._line(index, action, width) for index, action in enumerate(self.actions)]
        chosen = self.actions[self.picked]
        about, tone = (self.unsent, "warn") if self.unsent else (chosen.refused or chosen.summary, "dim")
        return [*out, (), *(((f" {text}", tone),) for text in fmt.wrap(fmt.visible(about, 600), max(10, width - 2)))]

    def action_pick(self, by: int) -> None:
        """Another action."""
        self.unsent = ""
        if self.actions:
            self.picked = max(0, min(len(self.actions) - 1, self.picked + by))
            room = max(1, self.box.size.height - 4)
            self.top = max(min(self.top, self.picked), self.picked + 2 - room)
        self.draw()

    def action_switch(self) -> None:
        """Ask for the other state of the chosen one."""
        if not self.actions:
            return
        action = self.actions[self.picked]
        if not action.refused:
            what = "enable" if self._off(action) else "disable"
            self.unsent = self.send(what, action.name)
            if not self.unsent:
                self.asked[action.name] = what
        self.draw()

    def judge_again(self) -> None:
        """An answer may have come."""
        for name, what in list(self.asked.items()):
            if (name in self.history.disabled_actions) == (what == "disable"):
                del self.asked[name]
        self.draw()

    def _place(self, action: Action) -> tuple[bool, float, str]:
        """Those without a meaning here last, the others by what they brought."""
        return bool(action.refused), -self._tally(action).weight, action.name

    def _off(self, action: Action) -> bool:
        return action.name in self.history.disabled_actions or not action.enabled

    def _tally(self, action: Action) -> Tally:
        return self.history.actions.get(action.name, NO_TALLY)

    def _line(self, index: int, action: Action, width: int) -> Line:
        tally = self._tally(action)
        asked = self.asked.get(action.name)
        state = f"{asked}…" if asked else "not here" if action.refused else "off" if self._off(action) else "on"
        tone = "accent" if asked else "dim" if action.refused else "warn" if self._off(action) else "good"
        mark = "!" if index == self.picked else ""
        figures_of = fmt.pad(f"{tally.weight:.2f}", 8, True) + fmt.pad(figures.count(tally.tries), 8, True)
        return fmt.fit((
            (fmt.pad(f" {'[ ]' if state == 'off' else '[x]' if state == 'on' else '   '} {state}", 14), tone + mark),
            (fmt.pad(fmt.visible(action.signature, 60), 34), ("dim" if action.refused else "strong") + mark),
            (figures_of + fmt.pad(figures.count(tally.wins), 7, True), mark),
        ), width)  # fmt: skip
