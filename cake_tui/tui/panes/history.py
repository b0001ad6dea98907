"""Throughput history: best so far as a step line, a glyph per outcome, baseline, peers and goal, marks of people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding

from cake_tui import figures
from cake_tui.model.history import History as Folded
from cake_tui.model.row import Row
from cake_tui.tui import format as fmt
from cake_tui.tui.ended import Ended
from cake_tui.tui.format import Line
from cake_tui.tui.pane import Pane
from cake_tui.tui.plot import SECONDS, STEPS, Canvas, Columns, Scale, by_candidate, by_time, nice_above, nice_below
from cake_tui.tui.views import View, goal_us

MARGIN = 7  # cells for labels at the left
SAMPLE = 1_000  # candidates that the scale of a long run is taken from
FAR_GOAL = 1.6  # a goal further off than this times the best or a peer is named at the edge, not drawn to scale
# In one column the heaviest failure shows.
FAILURES = ("WrongAnswer", "Crashed", "TimedOut", "LaunchFailed", "BuildFailed", "Rejected", "Interrupted")


class History(Pane):
    """Throughput or time, linear or logarithmic, over candidates or running time."""

    order: ClassVar[int] = 3
    title: ClassVar[str] = "history"
    help: ClassVar[str] = (
        "best so far as a line, every candidate as the glyph of its ending; lines of baseline, peers and goal; "
        "what has no time is in the lane below, what people did in the next"
    )

    BINDINGS = [
        Binding("t", "quantity", "time or throughput", id="history.quantity"),
        Binding("l", "scale", "logarithmic or linear", id="history.scale"),
        Binding("x", "axis", "over candidates or over running time", id="history.axis"),
        Binding("plus,equals_sign", "zoom(1)", "half as much, fitted to what is in it", id="history.in"),
        Binding("minus", "zoom(-1)", "twice as much", id="history.out"),
        Binding("left,h", "pan(1)", "earlier, where it is zoomed", id="history.earlier"),
        Binding("right", "pan(-1)", "later", id="history.later"),
    ]

    def __init__(self, name: str, number: int) -> None:
        super().__init__(name, number)
        self.as_time = False
        self.logarithmic = False
        self.over_time = False
        self.zoomed = 0
        self.panned = 0  # quarters of the window before the end; 0 follows it
        self._ended = Ended()
        self._base: object = None
        self._dots: dict[tuple[int, int], tuple[str, str]] = {}  # (column, row) -> (glyph, tone)
        self._worst: dict[int, str] = {}  # column -> the heaviest failure in it
        self._key: object = None
        self._lines: list[Line] = []

    def summary(self, view: View) -> Line:
        """Unit and scale."""
        unit = "time" if self._times(view) else _unit(view)[0]
        place = "last " if not self.panned else ""
        zoom = "" if not self.zoomed else f" · {place}1/{2**self.zoomed}"
        return ((f"{unit} · {'log' if self.logarithmic else 'linear'}{zoom}", "dim"),)

    def body(self, view: View, width: int, height: int) -> list[Line]:
        """The plot; made anew only when what it shows changed."""
        history = view.history
        key = (
            id(history), width, height, len(history.rows), tuple(history.counts.values()), len(history.wins),
            len(history.marks), tuple((p.avg_us, p.ratio) for p in history.peers.values()), view.flops,
            sum(row.time_us is not None for row in history.rows[-64:]),
            self.as_time, self.logarithmic, self.over_time, self.zoomed, self.panned,
        )  # fmt: skip
        if key != self._key:
            self._key, self._lines = key, self._draw(view, width, height)
        return self._lines

    def action_quantity(self) -> None:
        """Throughput or time."""
        self.as_time = not self.as_time
        self.draw()

    def action_scale(self) -> None:
        """Linear or logarithmic."""
        self.logarithmic = not self.logarithmic
        self.draw()

    def action_axis(self) -> None:
        """Candidates or running time."""
        self.over_time = not self.over_time
        self.draw()

    def action_zoom(self, by: int) -> None:
        """Halve or double what is shown."""
        self.zoomed = max(0, min(12, self.zoomed + by))
        self.panned = 0 if not self.zoomed else self.panned * 2 if by > 0 else self.panned // 2
        self.draw()

    def action_pan(self, by: int) -> None:
        """A quarter of the window earlier or later."""
        self.panned = max(0, min(4 * (2**self.zoomed - 1), self.panned + by))
        self.draw()

    def _times(self, view: View) -> bool:
        return self.as_time or not view.flops

    def _draw(self, view: View, width: int, height: int) -> list[Line]:
        history = view.history
        plot_width = width - MARGIN - 1
        if not any(row.time_us is not None for row in history.rows):
            return [((" no candidate has been measured yet", "dim"),)]
        if plot_width < 8 or height < 3:
            best_us = history.incumbent_us
            return [((f" best {figures.time(best_us)}  {figures.rate(view.flops, best_us)}", ""),)]
        extra = 1 + (height >= 7) + (height >= 9 and bool(history.marks))  # axis, failures, marks
        rows = height - extra
        first, end = self._window(history)
        columns = Columns.over(first, end, plot_width, SECONDS if self.over_time else STEPS)
        scale = self._scale(view, rows, columns)
        canvas = Canvas(plot_width, rows)
        labels = self._references(view, canvas, scale)
        self._candidates(view, canvas, columns, scale)
        self._best_line(view, canvas, columns, scale)
        _label(canvas, labels)
        ticks = self._ticks(view, scale)
        lines: list[Line] = []
        for row, cells in enumerate(canvas.lines()):
            label = fmt.pad(ticks.get(row, ""), MARGIN, right=True) + ("┤" if row in ticks else "│")
            lines.append(((label, "dim"), *cells))
        if height >= 7:
            lines.append(self._failures(columns))
        if height >= 9 and history.marks:
            lines.append(self._marks(view, columns))
        under = by_time(columns) if self.over_time else by_candidate(columns)
        lines.append(((" " * (MARGIN + 1), ""), (under, "dim")))
        return lines

    def _window(self, history: Folded) -> tuple[float, float]:
        """From where to where on the axis; whole candidates, so that columns keep what is in them."""
        whole = max((row.elapsed_s for row in history.rows[-64:]), default=0.0) if self.over_time else len(history.rows)
        size = max(1.0, whole / 2**self.zoomed)
        end = max(size, whole - self.panned * size / 4)
        return (end - size, end) if self.over_time else (math.floor(end - size), math.ceil(end))

    def _place(self, row: Row) -> float | None:
        """Where a candidate stands on the axis; None while it is in flight and the axis is time."""
        if not self.over_time:
            return row.number
        return None if row.outcome is None else row.elapsed_s

    def _inside(self, rows: Sequence[Row], columns: Columns) -> list[tuple[int, Row]]:
        """(column, candidate) of those on screen."""
        placed = ((self._place(row), row) for row in rows)
        found = ((columns.column(at), row) for at, row in placed if at is not None)
        return [(column, row) for column, row in found if 0 <= column < columns.width]

    def _value(self, view: View, time_us: float) -> float:
        if self._times(view) or not view.flops:
            return time_us
        return view.flops / time_us * 1e6

    def _scale(self, view: View, rows: int, columns: Columns) -> Scale:
        every = view.history.rows
        seen = [*every[:: max(1, len(every) // SAMPLE)], *every[-64:]]  # all of a long run would tell no more
        shown = [row.time_us for _, row in self._inside(seen, columns) if row.time_us is not None]
        best = view.history.incumbent_us
        if best is not None and not self.panned:
            shown.append(best)
        values = sorted(self._value(view, time) for time in shown if time > 0)
        if self.zoomed and not self.logarithmic and values:
            # Fitted to what is in the window; the one or two that are far off are held at its edge.
            low, high = values[int(len(values) * 0.1)], values[min(len(values) - 1, int(len(values) * 0.95))]
            low, high = (values[0], high) if self._times(view) else (low, values[-1])
            return Scale(nice_below(low * 0.995), nice_above(max(high, low * 1.01) * 1.005), rows, False)
        lines = [peer.avg_us for peer in view.history.peers.values()]
        goal = goal_us(view)
        if goal is not None and goal[1] * FAR_GOAL >= min([*shown, *lines]):
            lines.append(goal[1])
        values += [self._value(view, time) for time in lines if time > 0]
        high = nice_above(max(values) if values else 1.0)
        if self._times(view) and not self.logarithmic:
            # One slow baseline would flatten all that is of interest.
            kept = sorted(values)
            high = nice_above(kept[min(len(kept) - 1, int(len(kept) * 0.8))] * 1.1)
        low = 0.0
        if self.logarithmic:
            least = min(values) if values else 0.1
            low = max(least * 0.9, high * 1e-6)
        return Scale(low, high, rows, self.logarithmic)

    def _references(self, view: View, canvas: Canvas, scale: Scale) -> dict[int, list[str]]:
        labels: dict[int, list[str]] = {}
        wanted = [(name, peer.avg_us) for name, peer in view.history.peers.items()]
        goal = goal_us(view)
        if goal is not None:
            wanted.append((f"goal {goal[0]}", goal[1]))
        if view.history.baseline_us:
            wanted.append(("baseline", view.history.baseline_us))
        for name, time_us in wanted:
            if time_us > 0:
                row = scale.row(self._value(view, time_us))
                inside = scale.holds(self._value(view, time_us))
                if inside:
                    canvas.level(row, "═" if name.startswith("goal") else "┄", "dim")
                labels.setdefault(row, []).append(fmt.visible(name, 20) + ("" if inside else " ↑↓"[1 + (row > 0)]))
        return labels

    def _candidates(self, view: View, canvas: Canvas, columns: Columns, scale: Scale) -> None:
        """A glyph for each; where nothing moved, only those that ended since are added to what was there."""
        history = view.history
        news: Sequence[Row] = self._ended.news(history)
        base = (columns, scale, self.as_time, self.over_time, len(history.wins))
        if base != self._base or self._ended.restarted:
            self._base, self._dots, self._worst, news = base, {}, {}, history.rows
        for column, row in self._inside(news, columns):
            if row.outcome in FAILURES:
                known = self._worst.get(column)
                if known is None or FAILURES.index(row.outcome) < FAILURES.index(known):
                    self._worst[column] = row.outcome
            elif row.time_us is not None and row.time_us > 0 and row.verdict != "accepted" and row.outcome is not None:
                glyph, _, tone = fmt.outcome_mark(row.ended_as)
                self._dots[column, scale.row(self._value(view, row.time_us))] = (glyph, tone)
        for (column, line), (glyph, tone) in self._dots.items():
            canvas.put(column, line, glyph, tone)

    def _best_line(self, view: View, canvas: Canvas, columns: Columns, scale: Scale) -> None:
        rows = view.history.rows
        end = self._place(rows[-1]) if rows else None
        last = min(columns.width - 1, columns.column(end if end is not None else self._window(view.history)[1]))
        points: list[tuple[int, int]] = []
        crowned: list[tuple[int, int]] = []
        for win in view.history.wins:
            column = columns.column(win.elapsed_s if self.over_time else win.candidate)
            point = (max(0, column), scale.row(self._value(view, max(win.time_us, 1e-9))))
            if column > last:
                break
            if points and points[-1][0] == point[0]:
                points[-1] = point
            else:
                points.append(point)
            if column >= 0 and win.candidate:
                crowned = [*(at for at in crowned if at[0] != column), point]
        canvas.steps(points, last, "good")
        for column, row in crowned:
            canvas.put(column, row, "●", "goodword")

    def _failures(self, columns: Columns) -> Line:
        """A lane for those that have no time."""
        canvas = Canvas(columns.width, 1)
        for column, outcome in self._worst.items():
            glyph, _, tone = fmt.outcome_mark(outcome)
            canvas.put(column, 0, glyph, tone)
        return (("failed".rjust(MARGIN) + " ", "dim"), *canvas.lines()[0])

    def _marks(self, view: View, columns: Columns) -> Line:
        """Where a person or a guard acted, with the last one's words where there is room."""
        canvas = Canvas(columns.width, 1)
        at = [columns.column(mark.elapsed_s if self.over_time else mark.candidate) for mark in view.history.marks]
        inside = [(min(columns.width - 1, column), mark) for column, mark in zip(at, view.history.marks) if column >= 0]
        inside = [(column, mark) for column, mark in inside if not self.panned or column < columns.width - 1]
        for column, _ in inside:
            canvas.put(column, 0, "▲", "accentword")
        if inside:
            column, last = inside[-1]
            words = fmt.visible(f"{last.who}: {last.text}", 60)
            before = column - max((other for other, _ in inside[:-1] if other < column), default=-1) - 2
            after = columns.width - column - 2
            if words.isascii() and after >= min(len(words), 16):
                canvas.text(column + 2, 0, fmt.clip(words, after), "accent")
            elif words.isascii() and before >= 8:
                words = fmt.clip(words, before)
                canvas.text(column - 1 - len(words), 0, words, "accent")
        return (("people".rjust(MARGIN) + " ", "dim"), *canvas.lines()[0])

    def _ticks(self, view: View, scale: Scale) -> dict[int, str]:
        """Labels of the axis by row: round values, each on the row nearest to it."""
        parts = 4 if scale.rows >= 13 else 2
        if scale.rows < 5:
            parts = 1
        out: dict[int, str] = {}
        for part in range(parts + 1):
            value = scale.at(part / parts)
            text = figures.time(value, 3) if self._times(view) else _short(value / _unit(view)[1])
            out[scale.row(value)] = text if value else "0"
        return out


def _unit(view: View) -> tuple[str, float]:
    """Unit of throughput that suits the best."""
    per_second = view.flops / view.history.incumbent_us * 1e6 if view.flops and view.history.incumbent_us else 0.0
    for name, factor in (("TFLOP/s", 1e12), ("GFLOP/s", 1e9)):
        if per_second >= factor:
            return name, factor
    return "MFLOP/s", 1e6


def _short(value: float) -> str:
    """A round number of the axis: ``1,200``, ``300``, ``1.5``."""
    return figures.count(round(value)) if value >= 100 else f"{value:.3g}"


def _label(canvas: Canvas, labels: dict[int, list[str]]) -> None:
    """Names of the lines where they hide nothing: on their line, else beside it; with no room, none."""
    for row, names in labels.items():
        text = f" {', '.join(names)} "
        for at_row, over in ((row, " ┄═"), (row + 1, " "), (row - 1, " ")):
            at = canvas.room(at_row, len(text), over)
            if at is not None:
                canvas.text(at, at_row, text, "accent")
                break


PLUGIN: type[Pane] = History
