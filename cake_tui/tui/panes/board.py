"""Board: candidates by standing or by number; the selected one fills the feedback pane."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding

from cake_tui import figures
from cake_tui.model.ending import meaning_of, reason_of
from cake_tui.model.history import History
from cake_tui.model.outcome import FAILED
from cake_tui.model.row import Row
from cake_tui.tui import format as fmt
from cake_tui.tui.ended import Ended
from cake_tui.tui.format import Line
from cake_tui.tui.pane import Pane
from cake_tui.tui.views import View

ORDERS = ("rank", "newest", "time", "gain", "error")
FILTERS = ("all", "measured", "accepted", "slower", "no gain", "failed", "rejected", "screened", "repeated", "injected")
BEHIND = 1e15  # a place behind all that have a value; numbers added to it stay exact
ROOM_FOR_LATEST = 4  # rows from which on the last one is the latest candidate's, where it would not be seen else
NARROW = 4  # cells in which an outcome is its glyph alone
_HEADS = {"moves": "  base → moves", "": "  outcome"}


class Board(Pane):
    """Rank, number, outcome, time, gain over the holder it met, speed-up over candidate 0, path of moves.

    A time taken at another clock than the one that is normal now has a * before it.
    """

    order: ClassVar[int] = 4
    title: ClassVar[str] = "board"
    help: ClassVar[str] = (
        "candidates; up and down choose one for feedback and details, esc follows the latest; * marks a time "
        "taken at another clock than the one that is normal now, ▲ what a person injected"
    )
    finds: ClassVar[str] = "filter by words: number, outcome, moves, structure, reason"

    BINDINGS = [
        Binding("o", "reorder(1)", f"order by {', '.join(ORDERS)}", id="board.order"),
        Binding("O", "reorder(-1)", "the order before", id="board.order_back", show=False),
        Binding("f", "filter(1)", f"only {', '.join(FILTERS[1:])}", id="board.filter"),
        Binding("F", "filter(-1)", "the filter before", id="board.filter_back", show=False),
    ]

    def __init__(self, name: str, number: int) -> None:
        super().__init__(name, number)
        self.ordered_by = "rank"
        self.filtered = "all"
        self._order: list[int] = []
        self._shown: list[int] = []  # on screen, from the top down
        self._ended = Ended()
        self._base: tuple[str, str, str, int, int | None] | None = None
        self._flying: list[int] = []
        self._sorted: list[int] = []
        self._places: list[float] = []  # beside it, where each one stands
        self._left_latest = False  # a filter chose within itself; without it the latest is followed again

    def summary(self, view: View) -> Line:
        """Order, filter and how many there are."""
        words = self.ordered_by if self.ordered_by == "newest" else f"by {self.ordered_by}"
        shown = "" if self.filtered == "all" else f" · only {self.filtered}"
        return ((f"{words}{shown} · {figures.count(len(self._numbers(view.history)))}", "dim"),)

    def body(self, view: View, width: int, height: int) -> list[Line]:
        """Head and the rows around the selection."""
        numbers = self._numbers(view.history)
        ranked = self._ranked()
        columns = _columns(width, self.ordered_by, ranked)
        lines: list[Line] = [
            tuple(
                (fmt.pad(_HEADS.get(name, name) if size > NARROW else "", size, right), "dim")
                for name, size, right in columns
            )
        ]
        room = height - 1
        self._shown = []
        if not numbers:
            told = self._none() if view.history.rows else "no candidate yet"
            return [*lines, *(((f" {text}", "dim"),) for text in fmt.wrap(told, max(10, width - 2)))]
        self._keep_selected_visible(view, room)
        places = list(self.window(len(numbers), room))
        latest = self._placed(view) if view.follows else None
        apart = latest is not None and latest not in places and room >= ROOM_FOR_LATEST
        if latest is not None and apart:
            places[-1] = latest
        self._shown = [numbers[index] for index in places]
        for index in places:
            row = view.history.rows[numbers[index]]
            chosen = row.number == view.selected
            lines.append(_row(row, str(index + 1) if ranked else "", columns, view, chosen and not view.follows))
        if apart:
            lines[-1] = _told_latest(lines[-1])
        return lines

    def _none(self) -> str:
        """Why the list is empty, and which keys fill it again."""
        sought = f'no candidate has the words "{fmt.visible(self.sought, 40)}"; esc ends the search'
        filtered = f"no candidate is {self.filtered}; f and F choose another filter"
        return "; ".join([sought] * bool(self.sought) + [filtered] * (self.filtered != "all"))

    def moved(self, by: int) -> bool:
        """Choose another candidate."""
        view = self.view
        if view is None:
            return False
        numbers = self._numbers(view.history)
        if not numbers:
            return True
        here = self._placed(view)
        self._left_latest = False
        there = self.top if here is None else max(0, min(len(numbers) - 1, here + by))
        self.app.choose(numbers[there])  # type: ignore[attr-defined]
        return True

    def _placed(self, view: View) -> int | None:
        """Where the selected candidate stands in the order shown."""
        return self._order.index(view.selected) if view.selected in self._order else None

    def escaped(self) -> None:
        """Show the latest candidate again, whichever that is."""
        self.top = 0
        self.app.choose(None)  # type: ignore[attr-defined]

    def action_reorder(self, by: int) -> None:
        """Another order."""
        self.ordered_by = ORDERS[(ORDERS.index(self.ordered_by) + by) % len(ORDERS)]
        self.top = 0
        self.draw()

    def action_filter(self, by: int) -> None:
        """Another filter."""
        self.filtered = FILTERS[(FILTERS.index(self.filtered) + by) % len(FILTERS)]
        self.top = 0
        self.draw()
        self._choose_within()

    def find(self, text: str) -> None:
        """Filter by words."""
        super().find(text)
        self.top = 0
        self._choose_within()

    def _choose_within(self) -> None:
        """What enter opens, and the feedback is about, must be in the list."""
        if self.view is None:
            return
        order = self._numbers(self.view.history)
        if self._left_latest and not self.sought and self.filtered == "all":
            self._left_latest = False
            self.app.choose(None)  # type: ignore[attr-defined]
        elif order and self.view.selected not in order:
            self._left_latest = self._left_latest or self.view.follows
            self.app.choose(order[0])  # type: ignore[attr-defined]

    def on_click(self, event: events.Click) -> None:
        """Choose the clicked row."""
        line = event.y - 2
        if 0 <= line < len(self._shown):
            self.app.choose(self._shown[line])  # type: ignore[attr-defined]

    def _ranked(self) -> bool:
        """Whether a place in the list is a rank among all."""
        return self.ordered_by == "rank" and self.filtered in ("all", "measured") and not self.sought

    def _numbers(self, history: History) -> list[int]:
        """Candidates in order: those that ended since are put in their places, in flight ones stand at the end."""
        news = self._ended.news(history)
        base = (self.ordered_by, self.filtered, self.sought, len(history.wins), history.incumbent)
        unchanged = base == self._base and not news and not self._ended.restarted
        if unchanged and self._ended.open == self._flying:
            return self._order
        self._flying = self._ended.open
        if base != self._base or self._ended.restarted:
            rows = self._wanted(self._searched(history, news))
            self._base = base
            places = {row.number: self._place(row, history) for row in rows}
            self._sorted = sorted(places, key=places.__getitem__)
            self._places = [places[number] for number in self._sorted]
        else:
            for row in self._wanted(news):
                at = bisect.bisect(self._places, place := self._place(row, history))
                self._places.insert(at, place)
                self._sorted.insert(at, row.number)
        flying = [row.number for row in self._wanted([history.rows[number] for number in self._ended.open])]
        flying.reverse()
        self._order = [*flying, *self._sorted] if self.ordered_by == "newest" else [*self._sorted, *flying]
        return self._order

    def _searched(self, history: History, news: Sequence[Row]) -> Sequence[Row]:
        """Where to look for what is wanted: with more of a word typed, among what was found for less of it."""
        _, filtered, sought, *_ = self._base or ("", "", "")
        narrower = sought and self.sought.startswith(sought) and filtered == self.filtered
        if narrower and not self._ended.restarted:
            return [*(history.rows[number] for number in self._sorted), *news]
        flying = {*self._ended.open}
        return [row for row in history.rows if row.number not in flying] if flying else history.rows

    def _wanted(self, rows: Sequence[Row]) -> Sequence[Row]:
        found = rows if self.filtered == "all" else [row for row in rows if _passes(row, self.filtered)]
        return [row for row in found if self.wants(_words(row))] if self.sought else found

    def _place(self, row: Row, history: History) -> float:
        """Where a candidate stands, the least first; those without a value stand behind, by their numbers."""
        if self.ordered_by == "rank" and row.number == history.incumbent:
            return -math.inf  # whatever its standing: a standing is a chain of estimates, the gate decided
        return _PLACES[self.ordered_by](row)

    def _keep_selected_visible(self, view: View, room: int) -> None:
        place = self._placed(view)
        if view.follows:  # the first ones, and the latest
            self.top = 0
        if place is None or view.follows or room < 1:
            return
        if place < self.top:
            self.top = place
        elif place >= self.top + room:
            self.top = place - room + 1


def _standing(row: Row) -> float:
    """The highest standing first, then times without one, then what has no time, the newest of them first."""
    if row.time_us is None:
        return 2 * BEHIND - row.number
    if row.standing is not None and not math.isnan(row.standing):
        return -row.standing
    return BEHIND / 2 + row.time_us


def _least(row: Row, value: float | None) -> float:
    """Known values first, the least at the top; a NaN counts as unknown."""
    return value if value is not None and not math.isnan(value) else BEHIND + row.number


_PLACES: dict[str, Callable[[Row], float]] = {
    "rank": _standing,
    "newest": lambda row: -row.number,
    "time": lambda row: _least(row, row.time_us),
    "gain": lambda row: _least(row, -row.gain if row.gain is not None and row.number else None),
    "error": lambda row: _least(row, row.max_abs_err),
}


def _words(row: Row) -> str:
    """What a filter by words looks at."""
    _, word, _ = fmt.outcome_mark(row.ended_as)
    structure = row.schedule.structure if row.schedule is not None else ""
    told = (f"#{row.number}", word, row.proposal.text, structure, row.reason, row.proposal.who, row.proposal.reason)
    return " ".join(told)


def _passes(row: Row, kept: str) -> bool:
    match kept:
        case "measured":
            return row.time_us is not None and row.outcome is not None
        case "slower" | "no gain":
            return row.ended_as == kept.replace(" ", "_")
        case "accepted":
            return row.verdict == "accepted"
        case "injected":
            return row.proposal.request is not None
        case "failed":
            return row.outcome in FAILED
        case "rejected" | "screened" | "repeated":
            return row.outcome == kept.capitalize()
    return True


def _columns(width: int, ordered_by: str, ranked: bool) -> list[tuple[str, int, bool]]:
    """(name, cells, right-aligned) of the columns that fit; the path of moves takes what is left.

    What the list is ordered by is among them: a rank is by the speed-up over candidate 0.
    """
    gained = "speed-up" if ordered_by == "rank" and width < 90 else "gain"
    if width < 52:
        wanted = [("no", 6, True), ("", 4, False), ("time", 10, True), (gained, 9, True)]
    else:
        wanted = [("no", 7, True), ("", 15, False), ("time", 10, True), (gained, 9, True)]
        if width >= 78 and ranked:
            wanted[:0] = [("rank", 5, True)]
        if width >= 90:
            wanted.append(("speed-up", 10, True))
        if width >= 98:
            wanted.append(("throughput", 14, True))
        if width >= 112 or (ordered_by == "error" and width >= 62):
            wanted.append(("error", 10, True))
    used = sum(size for _, size, _ in wanted)
    return [*wanted, ("moves", max(1, width - used), False)] if width > used else wanted


def _row(row: Row, rank: str, columns: list[tuple[str, int, bool]], view: View, chosen: bool) -> Line:
    glyph, word, tone = fmt.outcome_mark(row.ended_as)
    best = row.number == view.history.incumbent
    wordy = next(size for name, size, _ in columns if not name) > NARROW
    error = "" if row.max_abs_err is None else f"{row.max_abs_err:.1e}"
    cells = {
        "rank": (rank if row.time_us is not None else "", ""),
        "no": (f"#{row.number}", "strong" if best else ""),
        "": (f"  {glyph} {word}" if wordy else f"  {glyph}", tone),
        "time": (_time(row, view.history.epoch), "goodword" if best else ""),
        "gain": (figures.gain(row.gain) if row.gain is not None and row.number else "", tone if row.verdict else ""),
        "speed-up": (figures.ratio(row.over_baseline) if row.over_baseline is not None else "", ""),
        "throughput": (figures.rate(view.flops, row.time_us) if row.time_us and view.flops else "", ""),
        "error": (error, "dim"),
        "moves": ("  " + _path(row, view.history), "" if row.time_us is not None else "dim"),
    }
    mark = "!" if chosen else ""
    if row.time_us is None and row.outcome is not None:  # its figures are blank: there is room for the reason
        columns = _merged(columns)
    return tuple((fmt.pad(cells[name][0], size, right), cells[name][1] + mark) for name, size, right in columns)


def _told_latest(line: Line) -> Line:
    """The line of the latest candidate where it does not stand in its place in the order."""
    return (*line[:-1], (f"  latest {line[-1][0][1:]}", line[-1][1]))


def _merged(columns: list[tuple[str, int, bool]]) -> list[tuple[str, int, bool]]:
    """The columns of rank, number and outcome, and one of the others' cells."""
    kept = [column for column in columns if column[0] in ("rank", "no", "")]
    return [*kept, ("moves", sum(size for name, size, _ in columns if name not in ("rank", "no", "")), False)]


def _time(row: Row, epoch: int) -> str:
    """The time; one that was taken at another clock does not compare, and is marked."""
    if row.time_us is None:
        return ""
    return f"{'' if row.epoch == epoch else '*'}{figures.time(row.time_us)}"


def _path(row: Row, history: History) -> str:
    """From which base, what it did; a failure adds why."""
    if row.number == 0:
        return "start"
    told = "" if row.time_us is not None else reason_of(row) or meaning_of(history, row) * (row.outcome is not None)
    why = f"  {fmt.visible(told, 200)}" if told else ""
    who = f"▲ {fmt.visible(row.proposal.who, 24)} " if row.proposal.request is not None else ""
    return f"{who}#{row.proposal.base} → {fmt.visible(row.proposal.text, 200)}{why}"


PLUGIN: type[Pane] = Board
