"""Throughput history: best so far as a step line, a glyph per outcome, baseline, peers and goal, marks of people."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding

from cake_tui import figures
from cake_tui.model.row import Row
from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line
from cake_tui.tui.pane import Pane
from cake_tui.tui.plot import Canvas, Columns, Scale, axis, nice_above
from cake_tui.tui.views import View, goal_us

MARGIN = 7  # cells for labels at the left
FAR_GOAL = 1.6  # a goal further off than this times the best or a peer is named at the edge, not drawn to scale
# In one column the heaviest failure shows.
FAILURES = ("WrongAnswer", "Crashed", "TimedOut", "LaunchFailed", "BuildFailed", "Rejected", "Interrupted")


class History(Pane):
    """By candidate number; throughput or time; linear or logarithmic."""

    order: ClassVar[int] = 3
    title: ClassVar[str] = "history"
    help: ClassVar[str] = "best so far and every candidate; t time or throughput, l log or linear, + and - zoom"

    BINDINGS = [
        Binding("t", "quantity", "time or throughput", id="history.quantity"),
        Binding("l", "scale", "log or linear", id="history.scale"),
        Binding("plus", "zoom(1)", "show the later half", id="history.in", show=False),
        Binding("minus", "zoom(-1)", "show twice as much", id="history.out", show=False),
    ]

    def __init__(self, name: str, number: int) -> None:
        super().__init__(name, number)
        self.as_time = False
        self.logarithmic = False
        self.zoomed = 0
        self._key: object = None
        self._lines: list[Line] = []

    def summary(self, view: View) -> Line:
        """Unit and scale."""
        unit = "time" if self._times(view) else _unit(view)[0]
        zoom = "" if not self.zoomed else f" · last 1/{2**self.zoomed}"
        return ((f"{unit} · {'log' if self.logarithmic else 'linear'}{zoom}", "dim"),)

    def body(self, view: View, width: int, height: int) -> list[Line]:
        """The plot; made anew only when what it shows changed."""
        history = view.history
        key = (
            id(history), width, height, len(history.rows), tuple(history.counts.values()), len(history.wins),
            len(history.marks), tuple((p.avg_us, p.ratio) for p in history.peers.values()), self.as_time,
            self.logarithmic, self.zoomed, sum(row.time_us is not None for row in history.rows[-64:]), view.flops,
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

    def action_zoom(self, by: int) -> None:
        """Halve or double what is shown, ending now."""
        self.zoomed = max(0, min(12, self.zoomed + by))
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
        count = len(history.rows)
        first = count - max(1, count >> self.zoomed)
        columns = Columns.over(first, count, plot_width)
        scale = self._scale(view, rows, first)
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
            lines.append(_failures(history.rows, columns))
        if height >= 9 and history.marks:
            lines.append(_marks(view, columns))
        lines.append(((" " * (MARGIN + 1), ""), (axis(columns, count), "dim")))
        return lines

    def _value(self, view: View, time_us: float) -> float:
        if self._times(view) or not view.flops:
            return time_us
        return view.flops / time_us * 1e6

    def _scale(self, view: View, rows: int, first: int) -> Scale:
        shown = [row.time_us for row in view.history.rows[first:] if row.time_us is not None]
        best = view.history.incumbent_us
        if best is not None:
            shown.append(best)
        lines = [peer.avg_us for peer in view.history.peers.values()]
        goal = goal_us(view)
        if goal is not None and goal[1] * FAR_GOAL >= min([*shown, *lines]):
            lines.append(goal[1])
        values = [self._value(view, time) for time in shown if time > 0]
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
        for row in view.history.rows[columns.first :]:
            if row.time_us is None or row.time_us <= 0 or row.verdict == "accepted":
                continue
            glyph, _, tone = fmt.outcome_mark(fmt.outcome_name(row.outcome, row.verdict, row.number))
            canvas.put(columns.column(row.number), scale.row(self._value(view, row.time_us)), glyph, tone)

    def _best_line(self, view: View, canvas: Canvas, columns: Columns, scale: Scale) -> None:
        points: list[tuple[int, int]] = []
        for win in view.history.wins:
            point = (max(0, columns.column(win.candidate)), scale.row(self._value(view, max(win.time_us, 1e-9))))
            if points and points[-1][0] == point[0]:
                points[-1] = point
            else:
                points.append(point)
        last = max(0, columns.column(len(view.history.rows) - 1))
        canvas.steps(points, last, "good")
        for column, row in points[1:] if points and not columns.first else points:
            canvas.put(column, row, "●", "goodword")

    def _ticks(self, view: View, scale: Scale) -> dict[int, str]:
        """Labels of the axis by row: round values, each on the row nearest to it."""
        parts = 4 if scale.rows >= 13 else 2
        if scale.rows < 5:
            parts = 1
        out: dict[int, str] = {}
        for part in range(parts + 1):
            value = scale.at(part / parts)
            text = figures.time(value, 3) if self._times(view) else f"{value / _unit(view)[1]:.3g}"
            out[scale.row(value)] = text if value else "0"
        return out


def _unit(view: View) -> tuple[str, float]:
    """Unit of throughput that suits the best."""
    per_second = view.flops / view.history.incumbent_us * 1e6 if view.flops and view.history.incumbent_us else 0.0
    for name, factor in (("TFLOP/s", 1e12), ("GFLOP/s", 1e9)):
        if per_second >= factor:
            return name, factor
    return "MFLOP/s", 1e6


def _label(canvas: Canvas, labels: dict[int, list[str]]) -> None:
    """Names of the lines where they hide nothing: on their line, else beside it; with no room, none."""
    for row, names in labels.items():
        text = f" {', '.join(names)} "
        for at_row, over in ((row, " ┄═"), (row + 1, " "), (row - 1, " ")):
            at = canvas.room(at_row, len(text), over)
            if at is not None:
                canvas.text(at, at_row, text, "accent")
                break


def _failures(rows: list[Row], columns: Columns) -> Line:
    """A lane for those that have no time."""
    worst: dict[int, str] = {}
    for row in rows[columns.first :]:
        if row.outcome in FAILURES:
            column = columns.column(row.number)
            known = worst.get(column)
            if known is None or FAILURES.index(row.outcome) < FAILURES.index(known):
                worst[column] = row.outcome
    canvas = Canvas(columns.width, 1)
    for column, outcome in worst.items():
        glyph, _, tone = fmt.outcome_mark(outcome)
        canvas.put(column, 0, glyph, tone)
    return (("failed".rjust(MARGIN) + " ", "dim"), *canvas.lines()[0])


def _marks(view: View, columns: Columns) -> Line:
    """Where a person or a guard acted, with the last one's words where there is room."""
    canvas = Canvas(columns.width, 1)
    for mark in view.history.marks:
        canvas.put(min(columns.width - 1, columns.column(mark.candidate)), 0, "▲", "accentword")
    last = view.history.marks[-1]
    at = min(columns.width - 1, max(0, columns.column(last.candidate))) + 2
    words = fmt.visible(f"{last.who}: {last.text}", 60)
    room = columns.width - at
    if room >= 8 and words.isascii():
        canvas.text(at, 0, fmt.clip(words, room), "accent")
    return (("people".rjust(MARGIN) + " ", "dim"), *canvas.lines()[0])


PLUGIN: type[Pane] = History
