"""The main screen: headline, tab bar where needed, panes, footer; and what the keys of the table do."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.widget import Widget

from cake_tui.model.state import ENDED
from cake_tui.tui.arrangement import Arrangement
from cake_tui.tui.bars import FootLine, TabBar
from cake_tui.tui.headline import Headline
from cake_tui.tui.keymap import Keymap
from cake_tui.tui.keys import Command, bindings, commands, footer
from cake_tui.tui.pane import Pane
from cake_tui.tui.screens.ask import Ask
from cake_tui.tui.screens.commands import Commands
from cake_tui.tui.screens.dialog import Dialog
from cake_tui.tui.screens.find import Find
from cake_tui.tui.screens.help import Help
from cake_tui.tui.screens.inject import Inject
from cake_tui.tui.screens.replaying import ReplayKeys
from cake_tui.tui.screens.switch import Switch
from cake_tui.tui.tiles import Tiles
from cake_tui.tui.timeline import Timeline
from cake_tui.tui.views import View


class Main(ReplayKeys, inherit_bindings=False):
    """Draws only panes that are on screen."""

    def __init__(self, panes: Sequence[Pane], replay: bool, keymap: Keymap, arrangement: Arrangement) -> None:
        super().__init__()
        self._bindings = bindings(replay, panes)
        self.replay = replay
        self.keymap = keymap
        self.headline = Headline(id="headline")
        self.timeline = Timeline()
        self.tabs = TabBar(id="tabs")
        self.tiles = Tiles(panes, arrangement)
        self.footline = FootLine(id="foot")
        self._message: tuple[str, str] | None = None
        self._behind = False  # a dialog stood before the panes when they should have been drawn
        self._ascii = False
        self.laid_out = False  # for the terminal's size: until then nothing is worth sending

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield self.headline
        yield self.timeline
        yield self.tabs
        yield self.tiles
        yield self.footline

    def on_mount(self) -> None:
        """The chosen pane has the focus."""
        self._focus(self.tiles.chosen)

    def on_resize(self) -> None:
        """Fewer headline lines in low terminals; draw for the new size."""
        self._fit()
        self.call_after_refresh(self._placed)

    def _placed(self) -> None:
        self.laid_out = True
        self._again()

    def show(self, view: View) -> None:
        """Draw a view; behind a dialog, where every change would send the dialog again, only the lines above it."""
        self._ascii = view.ascii
        top = self.app.screen
        self._behind = isinstance(top, Dialog)
        if isinstance(top, Dialog) and top.box.region.y <= self.headline.size.height:
            return
        self.headline.show(view)
        if self._behind:
            return
        if self.record is not None:
            self.timeline.show(self.record, view.ascii)
        for pane in self.tiles.on_screen():
            pane.show(view)
        self._tabs()

    def whole(self) -> None:
        """Send every cell once: what the panes asked for before this is part of it and need not follow."""
        self.refresh()
        for widget in self.walk_children(Widget):
            widget._exchange_repaint_regions()

    def _compositor_refresh(self) -> None:
        """As Textual's, which marks a screen behind another as changed for ever and sends it whole each time."""
        super()._compositor_refresh()
        if self is not self.app.screen:
            self._repaint_required = False
            self._exchange_repaint_regions()

    def on_screen_resume(self) -> None:
        """The dialog is gone: catch up."""
        if self._behind:
            self.call_after_refresh(self._again)

    def foot(self, message: tuple[str, str] | None, ascii: bool) -> None:  # noqa: A002
        """Draw the footer."""
        self._message, self._ascii = message, ascii
        pane = self.focused if isinstance(self.focused, Pane) else None
        keys = footer(self.replay, self.keymap, pane, turned=self._turned(), steered=self._steered())
        self.footline.show(keys, message, ascii)

    def _turned(self) -> str:
        """The binding that now does the opposite of its word."""
        if self.record is not None:
            return "replay.play" if self.record.playing else ""
        return "run.pause" if self.viewer.bridge.fold.history.state == "paused" else ""

    def _steered(self) -> bool:
        """Whether there is a run that keys could steer, as far as is known."""
        bridge = self.viewer.bridge
        return bridge.fold.history.state not in ENDED and bridge.engine_alive is not False

    def _again(self) -> None:
        if self.app.is_running:
            self.viewer.repaint()

    def _fit(self) -> None:
        height = self.app.size.height
        self.headline.styles.height = 3 if height >= 20 else 2 if height >= 8 else 1
        self.tabs.display = not self.tiles.all_fit() or self.tiles.zoomed
        self.timeline.display = self.replay and height >= 10
        self.footline.display = height >= 5

    def _tabs(self) -> None:
        wanted = not self.tiles.all_fit()
        if self.tabs.display != wanted:
            self.tabs.display = wanted
            self.call_after_refresh(self._again)
        if wanted:
            self.tabs.show(self.tiles.panes, self.tiles.chosen, self.tiles.on_screen(), self._ascii)

    def _focus(self, name: str) -> None:
        pane = self.tiles.choose(name)
        if pane is not None:
            pane.focus(scroll_visible=False)
            self.call_after_refresh(self._again)

    # -- keys ------------------------------------------------------------------------------------------

    def action_pane(self, name: str) -> None:
        """Go to a pane; there already, zoom it."""
        if self.tiles.chosen == name and self.focused is not None:
            self.action_zoom()
        else:
            self._focus(name)

    def action_next_pane(self, by: int) -> None:
        """The next pane in their order."""
        self._focus(self.tiles.next_to(self.tiles.chosen, by))

    def action_zoom(self) -> None:
        """One pane over all, and back."""
        self.tiles.zoom()
        self.call_after_refresh(self._again)

    def action_freeze(self) -> None:
        """Stand still, or catch up."""
        self.viewer.freeze(not self.viewer.frozen)

    def action_slow(self) -> None:
        """Repaint every ten seconds, or every second."""
        self.viewer.set_pace(not self.viewer.slow_link)
        self.viewer.say("slow link: one repaint every ten seconds" if self.viewer.slow_link else "one repaint a second")

    def action_redraw(self) -> None:
        """Draw every cell again."""
        self.viewer.action_redraw()

    def action_pause(self) -> None:
        """Pause or resume the run."""
        paused = self.viewer.bridge.fold.history.state == "paused"
        word = "resume" if paused else "pause"
        self.viewer.send(word, {}, word)

    def action_inject(self) -> None:
        """Open the dialog."""
        viewer = self.viewer
        history = viewer.bridge.fold.history
        if history.session is None:
            viewer.say("the session has not begun", "warn")
        elif viewer.may_send():
            viewer.push_screen(Inject(history, viewer.you, self._send_move, viewer.ascii))

    def _send_move(self, text: str) -> str:
        return self.viewer.send("inject", {"text": text, "reason": ""}, f"inject {text}")

    def action_undo(self) -> None:
        """Take back the last move that waits: one's own, also one just sent, else the last of all."""
        viewer = self.viewer
        queue = viewer.bridge.fold.history.queue
        told = {key: " + ".join(move.text for move in entry.moves) for key, entry in queue.items()}
        mine = {key: told[key] for key, entry in queue.items() if entry.who == viewer.you}
        mine |= {
            key: text.removeprefix("inject ") for key, text in viewer.pending.items() if text.startswith("inject ")
        }
        waiting = mine or told
        if waiting:
            last = list(waiting)[-1]
            viewer.send("undo", {"request": last}, f"undo {waiting[last]}")
        else:
            viewer.say("nothing is waiting in the queue")

    def action_mark(self) -> None:
        """Ask for a note."""
        if self.viewer.may_send():
            self.viewer.push_screen(Ask("mark", "a note for the journal", self._send_mark, self.viewer.ascii))

    def _send_mark(self, text: str) -> str:
        return self.viewer.send("mark", {"note": text}, "mark")

    def action_export(self) -> None:
        """Export the best."""
        self.viewer.export()

    def action_commands(self) -> None:
        """Everything by name."""
        found = commands(self.replay, self.tiles.panes, self.keymap)
        self.viewer.push_screen(Commands(found, self._do, self.viewer.ascii))

    def _do(self, command: Command) -> None:
        if command.pane is not None:
            self._focus(command.pane.pane_name)
        self.call_after_refresh(self.viewer.run_action, command.action, command.pane or self)

    def action_find(self) -> None:
        """Filter or search the focused pane."""
        pane = self.focused
        if isinstance(pane, Pane) and pane.finds:
            self.viewer.push_screen(Find(pane, self.viewer.ascii))
        else:
            where = ", ".join(pane.title for pane in self.tiles.panes if pane.finds)
            self.viewer.say(f"nothing to search in this pane; it works in: {where}")

    def action_hide(self) -> None:
        """Hide the chosen pane."""
        pane = next(pane for pane in self.tiles.panes if pane.pane_name == self.tiles.chosen)
        if not self.tiles.hide(pane.pane_name):
            self.viewer.say("the last pane stays")
            return
        self.viewer.say(f"{pane.title} is hidden; {pane.number} brings it back")
        self._focus(self.tiles.chosen)

    def action_shift_pane(self, by: int) -> None:
        """Let the chosen pane change places with its neighbour; the order is kept."""
        if self.tiles.arrangement.move(self.tiles.chosen, by):
            self.tiles.rearrange()
            self.call_after_refresh(self._again)

    def action_read_only(self) -> None:
        """Send nothing from this viewer, and back."""
        self.viewer.toggle_read_only()

    def action_switch(self) -> None:
        """The action space, to enable and disable."""
        viewer = self.viewer
        history = viewer.bridge.fold.history
        if history.session is None:
            viewer.say("the session has not begun", "warn")
        elif viewer.may_send():
            viewer.push_screen(Switch(history, self._send_switch, viewer.ascii))

    def _send_switch(self, what: str, action: str) -> str:
        return self.viewer.send(what, {"actions": [action]}, f"{what} {action}")

    def action_stop(self) -> None:
        """Ask for the run's name, then stop it."""
        viewer = self.viewer
        name = viewer.bridge.name
        about = f'What is in flight ends as interrupted, the rest is kept; "cake-tui resume {name}" goes on with it. '
        ask = f'To stop the run, type its name, without the quotes: "{name}"'
        if viewer.may_send():
            viewer.push_screen(Ask("stop the run", about + ask, self._send_stop, viewer.ascii))

    def _send_stop(self, text: str) -> str:
        name = self.viewer.bridge.name
        if text == name:
            return self.viewer.send("stop", {}, "stop")
        return f'not stopped: you typed "{text}", the run\'s name is "{name}"'

    def action_help(self) -> None:
        """Keys and glyphs."""
        self.viewer.push_screen(Help(self.tiles.panes, self.tiles.chosen, self.replay, self.keymap, self.viewer.ascii))
