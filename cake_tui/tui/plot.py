"""Geometry of the history plot: scales, columns and the cells of lines, dots and labels; no widget in here."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cake_tui import figures
from cake_tui.tui.format import Line

# Candidates a column: whole numbers only, so that old columns stay where they are as the run grows.
STEPS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100)


@dataclass(frozen=True)
class Columns:
    """Candidate number to column: `per` candidates share one, the first shown is `first`."""

    first: int
    per: int
    width: int

    @classmethod
    def over(cls, first: int, count: int, width: int) -> Columns:
        """The least whole number of candidates a column that holds `count` of them."""
        need = max(1, math.ceil(max(1, count - first) / max(1, width)))
        per = next((step for step in STEPS if step >= need), None) or math.ceil(need / 100) * 100
        return cls(first, per, width)

    def column(self, number: int) -> int:
        """The column of a candidate; may lie outside 0..width-1."""
        return (number - self.first) // self.per


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


def axis(columns: Columns, count: int) -> str:
    """Candidate numbers under the plot, about one every twelve cells, round ones."""
    every = nice_above(max(1, columns.per * 12))
    every = max(1, int(every))
    out = [" "] * columns.width
    number = math.ceil(columns.first / every) * every
    while columns.column(number) < columns.width:
        label = figures.count(number)
        at = columns.column(number)
        room = at + len(label) <= columns.width and all(out[i] == " " for i in range(max(0, at - 1), at + len(label)))
        if room:
            out[at : at + len(label)] = label
        number += every
    return "".join(out)
