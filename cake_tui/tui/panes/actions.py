"""Actions: weights, tries, wins and the last result of each, the queue of injected moves, what was explored."""

from __future__ import annotations

from collections import deque
from typing import ClassVar

from cake_tui import figures
from cake_tui.model import event as ev
from cake_tui.model.history import History
from cake_tui.model.neighbourhood import explored
from cake_tui.model.row import WEIGHT_MAX, Row, Tally, times_as_fast
from cake_tui.tui import format as fmt
from cake_tui.tui.ended import Ended
from cake_tui.tui.format import Line
from cake_tui.tui.pane import Pane
from cake_tui.tui.views import View

BAR, LAST, BEST = 9, 19, 8  # cells of a weight's bar, of the last result, of the best standing
WITH_LAST, WITH_BEST, WITH_BAR = 58, 70, 82  # widths from which on there is room for each
WINDOW = 256  # candidates of a structure that are searched for what was explored


class Actions(Pane):
    """What the agent believes, and what people asked for."""

    order: ClassVar[int] = 6
    title: ClassVar[str] = "actions"
    help: ClassVar[str] = (
        "the queue of injected moves with who and when; weight, tries, wins and last result of each action and "
        "structure; block shapes around the best that brought nothing"
    )
    finds: ClassVar[str] = "filter by name"

    def __init__(self, name: str, number: int) -> None:
        super().__init__(name, number)
        self._asked_at: dict[str, str] = {}
        self._last: dict[str, Row] = {}  # of each action and structure, its latest candidate that ended
        self._ended = Ended()
        self._timed: dict[str, deque[Row]] = {}  # of each structure, its latest candidates that have a time

    def summary(self, view: View) -> Line:
        """Queue length."""
        waiting = len(view.history.queue) + len(view.pending)
        return ((f"{waiting} injected waiting", "accent"),) if waiting else ()

    def body(self, view: View, width: int, height: int) -> list[Line]:
        """Queue first, then actions by weight, then structures, then what was explored."""
        self._follow(view.history)
        lines = self._queue(view)
        lines.append(_head("action", width))
        off = set(view.history.disabled_actions)
        known = {**{name: Tally() for name in off}, **view.history.actions}
        lines += self._tallies(known, width, off)
        if view.history.structures:
            lines.append(((" structure", "dim"),))
            lines += self._tallies(view.history.structures, width, set())
        if not self.sought:
            lines += self._explored(width)
        return [lines[index] for index in self.window(len(lines), height)]

    def _follow(self, history: History) -> None:
        """Remember the last candidate of each name."""
        news = self._ended.news(history)
        if self._ended.restarted:
            self._last, self._timed = {}, {}
        for row in news:
            names = {move.action for move in row.proposal.moves}
            if row.schedule is not None:
                names.add(row.schedule.structure)
                if row.time_us is not None:
                    self._timed.setdefault(row.schedule.structure, deque(maxlen=WINDOW)).append(row)
            self._last.update(dict.fromkeys(names, row))

    def _explored(self, width: int) -> list[Line]:
        """For each structure, what was tried around its best without winning; agents leave it alone."""
        lines: list[Line] = []
        for name, rows in self._timed.items():
            best = max(rows, key=lambda row: row.standing or 0.0)
            shapes = ", ".join(f"{x}×{y}" for x, y in explored(rows, best))
            if shapes:
                told = f"{fmt.visible(name, 40)} around #{best.number}: {shapes}"
                lines += [((f"   {text}", ""),) for text in fmt.wrap(told, max(8, width - 4), 2)]
        return [((" explored: blocks x×y that brought nothing", "dim"),), *lines] if lines else []

    def _queue(self, view: View) -> list[Line]:
        lines: list[Line] = []
        for place, queued in enumerate(view.history.queue.values(), 1):
            moves = " + ".join(move.text for move in queued.moves)
            who = f"  by {fmt.visible(queued.who, 40)}"
            lines.append((
                (f" {place}. {fmt.visible(moves, 200)}", "accentword"),
                (f"{who} at {self._when(view, queued.id)}", "dim"),
            ))  # fmt: skip
        wanted = ", ".join(f"#{number}" for number in view.history.wanted_profiles)
        if wanted:
            lines.append(((f" profile of {wanted}", "accent"), ("  after this round", "dim")))
        for text in view.pending.values():
            lines.append(((f" … {fmt.visible(text, 200)}", "accent"), ("  sent", "dim")))
        return lines

    def _when(self, view: View, request: str) -> str:
        """The time at which a request was taken, from its own event."""
        if request not in self._asked_at:
            found = ""
            for index in reversed(range(min(view.cursor, len(view.journal)))):
                if view.journal.kind(index) == "RequestTaken":
                    event = view.journal.event(index)
                    if isinstance(event, ev.RequestTaken) and event.id == request:
                        found = fmt.clock(event.t)
                        break
            if len(self._asked_at) > 256:
                self._asked_at.clear()
            self._asked_at[request] = found
        return self._asked_at[request]

    def _tallies(self, tallies: dict[str, Tally], width: int, off: set[str]) -> list[Line]:
        ordered = sorted(tallies.items(), key=lambda item: (-item[1].weight, item[0]))
        return [self._tally(name, tally, width, name in off) for name, tally in ordered if self.wants(name)]

    def _tally(self, name: str, tally: Tally, width: int, off: bool) -> Line:
        bar = BAR - 1 if width >= WITH_BAR else 0
        filled = max(0, min(bar, round(tally.weight / WEIGHT_MAX * bar)))
        line: list[tuple[str, str]] = [
            (" " + fmt.pad(fmt.visible(name, 60), _name(width)), "dim" if off else ""),
            (" " + "█" * filled + "░" * (bar - filled) if bar else "", "accent"),
            (fmt.pad("off" if off else f"{tally.weight:.2f}", 7, True), "warn" if off else ""),
            (fmt.pad(figures.count(tally.tries), 7, True), ""),
            (fmt.pad(figures.count(tally.wins), 6, True), "good" if tally.wins else "dim"),
        ]
        if width >= WITH_BEST:
            best = times_as_fast(tally.best_standing)
            line.append((fmt.pad("" if best is None else figures.ratio(best), BEST, True), ""))
        if width >= WITH_LAST:
            line += _result(self._last.get(name))
        return tuple(line)


def _name(width: int) -> int:
    """Cells of the name: what the columns leave."""
    used = 21 + LAST * (width >= WITH_LAST) + BEST * (width >= WITH_BEST) + BAR * (width >= WITH_BAR)
    return max(12, min(26, width - used))


def _head(what: str, width: int) -> Line:
    head = fmt.pad(f" {what}", _name(width) + 1) + fmt.pad("weight", 7 + BAR * (width >= WITH_BAR), True)
    head += fmt.pad("tries", 7, True) + fmt.pad("wins", 6, True)
    head += fmt.pad("best", BEST, True) * (width >= WITH_BEST) + "  last" * (width >= WITH_LAST)
    return ((head, "dim"),)


def _result(row: Row | None) -> Line:
    """Its latest candidate: the ending's glyph, its gain or else the ending in words."""
    if row is None:
        return ()
    glyph, word, tone = fmt.outcome_mark(row.ended_as)
    told = figures.gain(row.gain) if row.gain is not None and row.time_us is not None and row.number else word
    return ((f"  {glyph} {told}", tone), (f" #{row.number}", "dim"))


PLUGIN: type[Pane] = Actions
