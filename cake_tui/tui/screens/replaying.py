"""What the keys of a replay do: step, play, its speed, what people did, and going to a candidate or a time."""

from __future__ import annotations

from cake_tui.errors import UserError
from cake_tui.model.event import CandidateEnded
from cake_tui.store.line import line_of
from cake_tui.tui import format as fmt
from cake_tui.tui.keys import KEYS
from cake_tui.tui.replay import ReplayBridge
from cake_tui.tui.screens.ask import Ask
from cake_tui.tui.screens.candidates import CandidateKeys

PLACES = "#137, event 700, 12m30s of running time, 14:31 UTC, start or end"


class ReplayKeys(CandidateKeys, inherit_bindings=False):
    """A screen that shows a record under a cursor; in a live view these actions are not bound."""

    @property
    def record(self) -> ReplayBridge | None:
        """The record, where this is a replay."""
        bridge = self.viewer.bridge
        return bridge if isinstance(bridge, ReplayBridge) else None

    def action_elsewhere(self, name: str) -> None:
        """A key that holds in a live view alone, or in a replay alone, was pressed in the other one."""
        key = next(key for key in KEYS if key.id == name)
        word, run = key.word or key.help, self.viewer.bridge.name
        if self.record is not None:
            self.viewer.say(f"{word}: this is a recording, there is no run to steer", "warn")
        else:
            self.viewer.say(f"{word}: this is the run itself; its record is walked through by: cake-tui replay {run}")

    def action_step(self, by: int) -> None:
        """One candidate."""
        record = self.record
        if record is not None:
            self.viewer.message = None
            if not record.step(by):
                self.viewer.say("the end of the record" if by > 0 else "the beginning of the record")
            event = record.last_event()
            self.viewer.choose(event.candidate if isinstance(event, CandidateEnded) else None)

    def action_person(self, by: int) -> None:
        """To the next or previous thing that somebody did, and say what it was."""
        record = self.record
        if record is None:
            return
        if record.step_person(by):
            event = record.last_event()
            told = line_of(event, record.fold.history) if event is not None else ""
            self.viewer.say(f"▲ {fmt.clock(event.t if event else '')} UTC  {fmt.visible(told)}", "accentword")
        else:
            self.viewer.say(f"nobody did anything {'after' if by > 0 else 'before'} this")
        self.viewer.choose(None)

    def action_play(self) -> None:
        """Play, or stand still."""
        record = self.record
        if record is not None:
            record.play(not record.playing)
            self.viewer.choose(None if record.playing else self.viewer.chosen)

    def action_speed(self, by: int) -> None:
        """Faster or slower."""
        record = self.record
        if record is not None:
            speed = record.faster(by)
            self.viewer.say(f"{speed} × the speed of the run" + ("" if record.playing else "; space plays"))
            self.viewer.repaint()

    def action_goto(self) -> None:
        """Ask where to."""
        if self.record is not None:
            self.viewer.push_screen(Ask("go to", PLACES, self._go, self.viewer.ascii, "enter go"))

    def _go(self, text: str) -> str:
        record = self.record
        if record is None:
            return ""
        self.viewer.message = None
        try:
            self.viewer.choose(record.go(text))
        except UserError as error:
            return str(error)
        return ""
