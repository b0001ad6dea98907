"""Geometry of the history plot: scales, columns and the cells of lines, dots and labels; no widget in here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cake_tui import figures
from cake_tui.tui.format import Line

# Candidates, or seconds, a column: steps only, so that old columns stay where they are as the run grows.
STEPS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100)
CLOCK = (5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)  # labels
SECONDS = (0.5, 1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 180, 300, 600, 900, 1200, 1800, 3600)


@dataclass(frozen=True)
class Columns:
    """Position on the axis (candidate number, or seconds into the run) to column; `per` of them share one."""

    first: float
    per: float
    width: int

    @classmethod
    def over(cls, first: float, end: float, width: int, steps: Sequence[float] = STEPS) -> Columns:
        """The least step a column that holds all from `first` to before `end`."""
        need = max(steps[0], (end - first) / max(1, width))
        per = next((step for step in steps if step >= need), None) or math.ceil(need / steps[-1]) * steps[-1]
        return cls(first, per, width)

    def column(self, position: float) -> int:
        """The column of a position; may lie outside 0..width-1."""
        return math.floor((position - self.first) / self.per)


@dataclass(frozen=True)
class Scale:
    """Value to row: row 0 is the top and holds `high`."""

    low: float
    high: float
    rows: int
    logarithmic: bool

    def row(self, value: float) -> int:
        """The row of a value, held to the plot."""
        if not math.isfinite(value) or self.high <= self.low:
            return self.rows - 1
        if self.logarithmic:
            if value <= 0:
                return self.rows - 1
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return max(0, min(self.rows - 1, round((1 - share) * (self.rows - 1))))

    def holds(self, value: float) -> bool:
        """Whether a value lies within the plot."""
        return self.low <= value <= self.high * (1 + 1e-9)

    def at(self, share: float) -> float:
        """The value at a share of the height, 0 the bottom."""
        if self.logarithmic:
            return self.low * math.exp(share * math.log(self.high / self.low))
        return self.low + share * (self.high - self.low)


def nice_above(value: float) -> float:
    """The next round number (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten) at or above a value."""
    if value <= 0 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    for step in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10):
        if step * power >= value * (1 - 1e-9):
            return step * power
    return 10 * power


def nice_below(value: float) -> float:
    """The greatest of the same round numbers at or below a value; 0 for what is not positive."""
    if value <= 0 or not math.isfinite(value):
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return max(step for step in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8) if step * power <= value * (1 + 1e-9)) * power


class Canvas:
    """A rectangle of cells, each a glyph and a tone; later ones cover earlier ones."""

    def __init__(self, width: int, rows: int) -> None:
        self.width, self.rows = width, rows
        self._glyphs = [[" "] * width for _ in range(rows)]
        self._tones = [[""] * width for _ in range(rows)]

    def put(self, column: int, row: int, glyph: str, tone: str) -> None:
        """Set one cell; outside ones are dropped."""
        if 0 <= column < self.width and 0 <= row < self.rows:
            self._glyphs[row][column], self._tones[row][column] = glyph, tone

    def text(self, column: int, row: int, text: str, tone: str) -> None:
        """Write single-width text."""
        for offset, char in enumerate(text):
            self.put(column + offset, row, char, tone)

    def room(self, row: int, size: int, over: str) -> int | None:
        """The rightmost column from which on `size` cells hold nothing but glyphs of `over`."""
        if not 0 <= row < self.rows:
            return None
        line = self._glyphs[row]
        for at in range(self.width - size, -1, -1):
            if all(glyph in over for glyph in line[at : at + size]):
                return at
        return None

    def level(self, row: int, glyph: str, tone: str) -> None:
        """A horizontal line over the whole width."""
        for column in range(self.width):
            self.put(column, row, glyph, tone)

    def steps(self, points: list[tuple[int, int]], end: int, tone: str) -> None:
        """A step line through (column, row) points, going on to column `end`."""
        for index, (column, row) in enumerate(points):
            stop = points[index + 1][0] if index + 1 < len(points) else end + 1
            for along in range(column, stop):
                self.put(along, row, "─", tone)
            if index and points[index - 1][1] != row:
                self._rise(column, points[index - 1][1], row, tone)

    def _rise(self, column: int, old: int, new: int, tone: str) -> None:
        up = new < old
        for between in range(min(old, new) + 1, max(old, new)):
            self.put(column, between, "│", tone)
        self.put(column, old, "╯" if up else "╮", tone)
        self.put(column, new, "╭" if up else "╰", tone)

    def lines(self) -> list[Line]:
        """Rows as spans of equal tone."""
        return [_spans(glyphs, tones) for glyphs, tones in zip(self._glyphs, self._tones)]


def _spans(glyphs: list[str], tones: list[str]) -> Line:
    out: list[tuple[str, str]] = []
    begin = 0
    for column in range(1, len(glyphs) + 1):
        if column == len(glyphs) or tones[column] != tones[begin]:
            out.append(("".join(glyphs[begin:column]), tones[begin]))
            begin = column
    return tuple(out)


def axis(columns: Columns, label: Callable[[float], str], every: float) -> str:
    """Labels under the plot at multiples of `every`, those that have room."""
    out = [" "] * columns.width
    number = math.ceil(columns.first / every - 1e-9) * every
    while columns.column(number) < columns.width:
        text = label(number)
        at = columns.column(number)
        if at + len(text) <= columns.width and all(out[i] == " " for i in range(max(0, at - 1), at + len(text))):
            out[at : at + len(text)] = text
        number += every
    return "".join(out)


def by_candidate(columns: Columns) -> str:
    """Candidate numbers under the plot, about one every twelve cells, round ones."""
    every = max(1, int(nice_above(columns.per * 12)))
    return axis(columns, lambda number: figures.count(round(number)), every)


def by_time(columns: Columns) -> str:
    """Running time under the plot, about one every fourteen cells, round ones."""
    need = columns.per * 14
    every = next((step for step in CLOCK if step >= need), None) or math.ceil(need / CLOCK[-1]) * CLOCK[-1]
    return axis(columns, _elapsed, every)


def _elapsed(seconds: float) -> str:
    """``30 s``, ``2 m``, ``1 h 30 m``: round ones lose their zeros."""
    return figures.duration(seconds).removesuffix(" 00 s").removesuffix(" 00 m")
