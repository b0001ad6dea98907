"""Commands: everything that a key can do, by its name; typed words narrow the list, enter does the marked one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.highlighter import NullHighlighter
from textual.binding import Binding
from textual.widget import Widget
from textual.widgets import Input

from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line
from cake_tui.tui.keys import Command
from cake_tui.tui.screens.dialog import Dialog

KEYS = 12  # cells of a command's keys
NAME = 30


class Commands(Dialog):
    """`act` gets the chosen command, once the list is gone."""

    title_text = "commands"

    DEFAULT_CSS = """
    Commands Input { border: none; height: 1; padding: 0 1; background: ansi_default; color: ansi_default; }
    Commands Input:focus { border: none; background: ansi_default; }
    """

    BINDINGS = [
        Binding("up", "pick(-1)", "previous", show=False, priority=True),
        Binding("down", "pick(1)", "next", show=False, priority=True),
        Binding("pageup", "pick(-10)", "ten up", show=False, priority=True),
        Binding("pagedown", "pick(10)", "ten down", show=False, priority=True),
        Binding("escape", "dismiss_dialog", "close", show=False, priority=True),
    ]

    def __init__(self, commands: Sequence[Command], act: Callable[[Command], None], ascii: bool = False) -> None:  # noqa: A002
        super().__init__(ascii)
        self.commands = list(commands)
        self.act = act
        self.picked = 0
        self.input = Input(placeholder="part of a name", highlighter=NullHighlighter(), max_length=80)
        self.input.cursor_blink = False

    def parts(self) -> list[Widget]:
        """The field, then the list under its rule."""
        return [self.input, self.box]

    def hint(self) -> str:
        """Keys."""
        return "up down choose  enter do it  esc close"

    def lines(self, width: int) -> list[Line]:
        """A command a line: name, what it does, its keys."""
        found = self._found()
        if not found:
            return [((" no command of this name", "dim"),)]
        self.picked = max(0, min(self.picked, len(found) - 1))
        room = max(1, self.box.size.height - 1)
        self.top = max(min(self.top, self.picked), self.picked - room + 1)
        return [self._line(command, index == self.picked, width) for index, command in enumerate(found)]

    def on_mount(self) -> None:
        """The field takes the keys."""
        self.input.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Narrow the list."""
        self.picked = self.top = 0
        self.draw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Do the marked one."""
        found = self._found()
        if found:
            self.dismiss(None)
            self.act(found[self.picked])

    def action_pick(self, by: int) -> None:
        """Another command, once the field has taken in what was typed before: this key overtakes its own."""
        self.input.call_later(self.call_later, self._pick, by)

    def _pick(self, by: int) -> None:
        self.picked = max(0, self.picked + by)
        self.draw()

    def _found(self) -> list[Command]:
        words = self.input.value.casefold().split()
        found = [one for one in self.commands if all(word in f"{one.name} {one.help}".casefold() for word in words)]
        return sorted(found, key=lambda one: not all(word in one.name.casefold() for word in words))

    def _line(self, command: Command, picked: bool, width: int) -> Line:
        mark = "!" if picked else ""
        name = fmt.pad(f" {command.name}", min(NAME, max(12, width // 2)))
        room = width - len(name) - KEYS
        about = fmt.pad(f" {fmt.clip(command.help, room - 2)}", room) if room > 8 else ""
        return ((name, "strong" + mark), (about, "dim" + mark), (fmt.pad(command.keys, KEYS), "accent" + mark))
