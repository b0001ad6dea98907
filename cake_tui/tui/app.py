"""The viewer: polls once a second, hands the view to the panes, turns keys into requests; it steers no run itself."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual import events
from textual.app import App
from textual.binding import Binding
from textual.screen import Screen
from textual.timer import Timer

from cake_tui import figures, registry
from cake_tui.config import user_name
from cake_tui.errors import UserError
from cake_tui.tui import format as fmt
from cake_tui.tui.arrangement import FILE as PANES_FILE
from cake_tui.tui.arrangement import Arrangement
from cake_tui.tui.bridge import Bridge
from cake_tui.tui.driver import TerminalDriver
from cake_tui.tui.keymap import FILE as KEYS_FILE
from cake_tui.tui.keymap import Keymap, read_keymap
from cake_tui.tui.keys import defaults
from cake_tui.tui.pane import Pane
from cake_tui.tui.screens.inject import Inject
from cake_tui.tui.screens.main import Main
from cake_tui.tui.screens.switch import Switch
from cake_tui.tui.views import View, until_next_step_s, view_of

FAST_S, SLOW_S = 1.0, 10.0
MESSAGE_S = 10.0
SLICE_S = 0.5  # of reading at a time
READINGS_S = 10.0  # how often readings are drawn while a guard holds the run


class CakeApp(App[int]):
    """One session on screen. `repaint` draws what changed; a screen where nothing changed sends nothing."""

    TITLE = "cake-tui"
    CSS = """
    Main { background: ansi_default; color: ansi_default; layout: vertical; }
    #headline { height: 3; } #tabs { height: 1; } #foot { height: 1; dock: bottom; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = [Binding("ctrl+c,ctrl+q", "detach", "detach", id="app.detach", show=False, priority=True)]

    def __init__(
        self,
        bridge: Bridge,
        *,
        read_only: bool = False,
        slow_link: bool = False,
        ascii: bool = False,  # noqa: A002 the flag's own name
        light: bool = False,
        you: str | None = None,
        settings: Path | None = None,
    ) -> None:
        super().__init__(driver_class=TerminalDriver, ansi_color=True)
        self.theme = "ansi-dark"
        self.animation_level = "none"
        self.bridge = bridge
        self.read_only = read_only
        self.slow_link = slow_link
        self.ascii = ascii
        self.light = light  # the terminal's ground: colours that are too pale on white give way
        self.you = you or user_name()
        self.settings = settings  # folder of keys.toml and panes.toml; None: defaults, nothing is kept
        self.opened_read_only = read_only
        self.chosen: int | None = None
        self.frozen = False
        self.pending: dict[str, str] = {}
        self.message: tuple[str, str] | None = None
        self.mistakes: tuple[str, ...] = ()  # of the two files of settings
        self.crash: BaseException | None = None
        self.leaving: Callable[[], object] = lambda: None
        self._message_until = 0.0
        self._readings_at = 0.0
        self._menu_refused = ""  # as told last
        self._tick_timer: Timer | None = None
        self._main: Main | None = None
        self._view: View | None = None
        self._seen = False  # something is drawn: until then no frame is sent, for Textual would send blank ones

    # -- life ----------------------------------------------------------------------------------------

    def get_default_screen(self) -> Screen[Any]:
        """The screen of panes."""
        panes = load_panes()
        keymap, path = Keymap(), None
        if self.settings is not None:
            keymap, path = read_keymap(self.settings / KEYS_FILE, defaults(panes)), self.settings / PANES_FILE
        arrangement = Arrangement([pane.pane_name for pane in panes], path)
        self.set_keymap(dict(keymap.changed))
        self.mistakes = (*keymap.mistakes, *arrangement.mistakes)
        self._main = Main(panes, self.bridge.replay, keymap, arrangement)
        return self._main

    def on_mount(self) -> None:
        """Read what is there and begin to tick."""
        self._catch_up()
        if self.mistakes:
            more = f" (and {len(self.mistakes) - 1} more: ? lists them)" if len(self.mistakes) > 1 else ""
            self.say(self.mistakes[0] + more, "warn")

    def _catch_up(self) -> None:
        """Read a long record in slices, saying how far it is, then begin to tick."""
        self.bridge.poll(SLICE_S)
        if self.bridge.behind and self._main is not None:
            self.call_after_refresh(self._main.headline.reading, self.bridge.share_read)
            self.call_after_refresh(self._open)
            self.set_timer(0.01, self._catch_up)
            return
        self._menu_refused = self.bridge.fold.trail.menu_refused
        gc.freeze()  # what is there stays: looking through it again and again would hold up keys
        self.set_pace(self.slow_link)
        self.call_after_refresh(self.repaint)

    def _open(self) -> None:
        """Send the first screen, whole, once it is laid out, and from here on what changes."""
        if not self._seen and self._main is not None and self._main.laid_out:
            self._seen = True
            self._main.whole()

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        """Send a frame, once there is something to be seen on it."""
        if self._seen:
            super()._display(screen, renderable)

    def tick(self) -> None:
        """Once a second: fold what is new and draw what it changed; a frozen screen reads nothing."""
        if self.message is not None and time.monotonic() >= self._message_until:
            self.message = None
            self._foot()
        if self.frozen:
            return
        news = self.bridge.poll()
        self._answers()
        self._refused_menu()
        view = self._view
        now = time.monotonic()
        held = view is not None and view.status.word.startswith("PAUSED:") and now - self._readings_at >= READINGS_S
        if news or held or view is None or view.status.ticking:
            self._readings_at = now
            self.repaint()

    def repaint(self) -> None:
        """Draw the moment."""
        if self._main is None or not self.screen_stack:  # not there yet, or going: a tick may come in between
            return
        self._view = self.view()
        self._main.show(self._view)
        self._foot()
        self._open()
        if isinstance(self.screen, Inject | Switch):
            self.screen.judge_again()

    def view(self) -> View:
        """The moment as panes see it."""
        return view_of(
            self.bridge,
            you=self.you,
            selected=self.chosen,
            read_only=self.read_only,
            frozen=self.frozen,
            ascii=self.ascii,
            pending=dict(self.pending),
        )

    def freeze(self, still: bool) -> None:
        """Let this screen stand still, whatever the run does, or show again what happens."""
        self.frozen = still
        self.bridge.hold(still)
        self.tick()
        self.repaint()

    def say(self, text: str, tone: str = "") -> None:
        """Show one line in the footer for a while."""
        self.message = (text, tone)
        self._message_until = time.monotonic() + MESSAGE_S
        self._foot()

    def _foot(self) -> None:
        if self._main is not None:
            self._main.foot(self.message, self.ascii)

    # -- what goes wrong -------------------------------------------------------------------------------

    def notify(self, message: str, **options: Any) -> None:
        """Notifications are never markup: what they say may be a compiler's text."""
        super().notify(fmt.visible(message), **{**options, "markup": False})

    def _handle_exception(self, error: Exception) -> None:
        """Leave at once; who called `run` gets the error, and the terminal back, without a dump of locals."""
        self.crash = self.crash or error
        self._return_code = 1
        if self._exception is None:
            self._exception = error
            self._exception_event.set()
        self._close_messages_no_wait()

    def panic(self, *renderables: Any) -> None:
        """Textual's own threads end here; what they say is their traceback with locals, of which a line is kept."""
        stacks = [stack for shown in renderables if (trace := getattr(shown, "trace", None)) for stack in trace.stacks]
        words = [f"{stack.exc_type}: {stack.exc_value}" for stack in stacks[-1:]]
        self.crash = self.crash or RuntimeError(" ".join(["a thread of the screen ended", *words]))
        self._return_code = 1
        self._close_messages_no_wait()

    # -- choosing --------------------------------------------------------------------------------------

    def choose(self, number: int | None) -> None:
        """Show a candidate in the feedback pane; None follows the latest."""
        self.chosen = number
        self.repaint()

    def action_detach(self) -> None:
        """Leave the screen; the run goes on."""
        self.leaving()
        self.exit(0)

    def action_redraw(self) -> None:
        """Send every cell and every mode again: another program, or a lost connection, may have changed them."""
        if isinstance(self._driver, TerminalDriver):
            self._driver.reassert()
        for screen in self.screen_stack:
            screen.refresh(layout=True)
            for widget in screen.query("*"):
                widget.refresh()
        self.repaint()

    def on_app_focus(self, event: events.AppFocus) -> None:
        """The terminal is looked at again: artefacts of its absence go."""
        event.prevent_default()
        if not self.slow_link:
            self.action_redraw()

    def on_app_blur(self, event: events.AppBlur) -> None:
        """Another window: the chosen pane stays the chosen one, and nothing is sent."""
        event.prevent_default()

    def toggle_read_only(self) -> None:
        """Send nothing, and back; a viewer that was opened so stays so."""
        if self.opened_read_only:
            self.say("opened with --read-only: it stays so until you leave", "warn")
            return
        self.read_only = not self.read_only
        self.say("read-only: this viewer sends nothing" if self.read_only else "this viewer may send requests again")
        self.repaint()

    def set_pace(self, slow: bool) -> None:
        """Choose how often the screen is drawn."""
        self.slow_link = slow
        if self._tick_timer is not None:
            self._tick_timer.stop()
        self._tick_timer = self.set_interval(SLOW_S if slow else FAST_S, self.tick)

    # -- requests --------------------------------------------------------------------------------------

    def hindrance(self) -> str:
        """Why no request could act now; empty where one could."""
        if self.bridge.replay:
            return "this is a recording: there is no run to steer"
        if self.read_only:
            return "read-only: this viewer sends nothing"
        if self.bridge.engine_alive is False:
            return f"no engine runs this session; go on with: cake-tui resume {self.bridge.name}"
        return ""

    def may_send(self) -> bool:
        """Whether a request could act; says why not."""
        why = self.hindrance()
        if why:
            self.say(why, "warn")
        return not why

    def send(self, what: str, body: dict[str, Any], text: str) -> str:
        """Put a request into the inbox; the answer comes through the journal. Returns why nothing was sent, if so."""
        why = self.hindrance()
        if why:
            self.say(why, "warn")
            return why
        try:
            request = self.bridge.send(what, body, self.you)
        except OSError as error:
            why = f"{what}: the inbox cannot be written: {error.strerror}"
            self.say(why, "bad")
            return why
        self.pending[request] = text
        left = None if self._view is None else until_next_step_s(self._view)
        when = "" if left is None else f", in about {max(1, round(left))} s"
        self.say(f"{text}: sent; it acts between two steps of the run{when}", "accent")
        self.repaint()
        return ""

    def _answers(self) -> None:
        """Say what became of the requests this viewer sent."""
        ids = self.bridge.fold.history.request_ids
        for request in [request for request in self.pending if request in ids]:
            text = self.pending.pop(request)
            if ids[request] == "refused":
                refused = self.bridge.fold.trail.refusals.get(request, "")
                self.say(f"{text}: refused: {refused}", "bad")
            else:
                self.say(f"{text}: {'taken back' if ids[request] == 'undone' else 'taken'}", "good")

    def _refused_menu(self) -> None:
        """Say at once that an edit of actions.toml is not taken: whoever made it waits for it to act."""
        refused = self.bridge.fold.trail.menu_refused
        if refused != self._menu_refused:
            self._menu_refused = refused
            if refused and not self.bridge.replay:
                self.say(refused, "bad")

    def export(self) -> None:
        """Write the best kernel into the working folder and say where it is."""
        from cake_tui.exporters import Exporter
        from cake_tui.store import export

        history = self.bridge.fold.history
        if history.session is not None and history.session.device.kind == "simulated":
            only = f"cake-tui export {self.bridge.name} --allow-simulated"
            self.say(f"export: simulated figures are no measurements; to have the file all the same: {only}", "warn")
            return
        try:
            target = history.session.device.target if history.session is not None else "c"
            exporter: Exporter = registry.load("exporters", target)
            bundle = export.bundle(self.bridge.folder, history, None)
            path = _free_path(f"{self.bridge.name}-{bundle.candidate}", exporter.suffix)
            export.save(path, exporter.write(bundle), force=False)
        except UserError as error:
            self.say(f"export: {str(error).splitlines()[0]}", "bad")
            return
        except OSError as error:
            self.say(f"export: cannot write here: {error.strerror}", "bad")
            return
        digest = figures.digest(bundle.lowered.sha256)  # as the pane, verify and show have it
        self.say(f"exported #{bundle.candidate} to {path}, {digest}, in {path.absolute().parent}", "good")


def load_panes() -> list[Pane]:
    """All panes that the registry finds, in their order, numbered from 1."""
    found = [(name, registry.load("tui/panes", name)) for name in registry.names("tui/panes")]
    found.sort(key=lambda entry: (entry[1].order, entry[0]))
    return [kind(name, number) for number, (name, kind) in enumerate(found, 1)]


def _free_path(stem: str, suffix: str) -> Path:
    """A name that is not taken: nothing is overwritten from the screen."""
    path, number = Path(stem + suffix), 1
    while path.exists():
        number += 1
        path = Path(f"{stem}-{number}{suffix}")
    return path
