"""Compare: two candidates side by side: ending, times, knobs that differ, counters; then their sources' diff."""

from __future__ import annotations

from typing import Any

from textual.binding import Binding

from cake_tui import figures
from cake_tui.model import event as ev
from cake_tui.model.row import Row
from cake_tui.tui import format as fmt
from cake_tui.tui import sections
from cake_tui.tui.format import Line
from cake_tui.tui.highlight import source_diff
from cake_tui.tui.record import Record
from cake_tui.tui.screens.dialog import Dialog
from cake_tui.tui.views import View

NAME = 26


class Compare(Dialog):
    """What differs is bright, what is equal is dim."""

    BINDINGS = [Binding("c,enter,q", "dismiss_dialog", "close", show=False)]

    def __init__(self, view: View, first: int, second: int) -> None:
        super().__init__(view.ascii)
        self.view = view
        self.pair = (first, second)
        self._made: tuple[int, list[Line]] | None = None

    def caption(self) -> str:
        """Which two."""
        return f"#{self.pair[0]} beside #{self.pair[1]}"

    def lines(self, width: int) -> list[Line]:
        """The table, made once a width."""
        if self._made is None or self._made[0] != width:
            self._made = (width, self._write(width))
        return self._made[1]

    def _write(self, width: int) -> list[Line]:
        rows = [self.view.history.rows[number] for number in self.pair]
        records = [Record(self.view, row) for row in rows]
        lines: list[Line] = [_line("", [f"#{row.number}" for row in rows], width, "strong")]
        told = [_told(row, self.view) for row in rows]
        lines += [_line(name, [one[name] for one in told], width) for name in told[0]]
        lines += _table("schedule", [_knobs(row) for row in rows], width)
        lines += _table("build", [_facts(record) for record in records], width)
        lines += _table("profile", [_counters(record) for record in records], width)
        texts = [self.view.files.source(row.number) for row in rows]
        lines += [(), ((" ▾ sources", "accentword"),)]
        if texts[0] is None or texts[1] is None:
            missing = [f"#{row.number}" for row, text in zip(rows, texts) if text is None]
            return [*lines, ((f"   no source on record of {' and '.join(missing)}", "dim"),)]
        return [*lines, *source_diff(texts[0].text, texts[1].text, *self.pair)]


def _told(row: Row, view: View) -> dict[str, str]:
    glyph, word, _ = fmt.outcome_mark(row.ended_as)
    against = f" against #{row.against}" if row.against is not None else ""
    error = figures.UNKNOWN if row.max_abs_err is None else figures.significant(row.max_abs_err, 2)
    return {
        "ended": f"{glyph} {word}",
        "time": figures.time(row.time_us),
        "throughput": figures.rate(view.flops, row.time_us),
        "gain": f"{figures.gain(row.gain)}{against}" if row.number else "",
        "over the baseline": figures.ratio(row.over_baseline),
        "predicted": figures.time(row.predicted_us),
        "largest error": error,
        "moves": fmt.visible(row.proposal.text, 200),
        "from": f"#{row.proposal.base}" if row.number else "",
        "chosen by": fmt.visible(f"{row.proposal.chosen_by}, {row.proposal.who}", 80),
        "why": fmt.visible(row.proposal.reason, 200),
        "findings": fmt.visible(", ".join(row.labels), 200),
    }


def _knobs(row: Row) -> dict[str, Any]:
    return {} if row.schedule is None else {"structure": row.schedule.structure, **dict(row.schedule.knobs)}


def _facts(record: Record) -> dict[str, Any]:
    built = record.last(ev.BuildEnded)
    return {} if built is None else sections.known(built.facts)


def _counters(record: Record) -> dict[str, Any]:
    ended = record.last(ev.CandidateEnded)
    return {} if ended is None or ended.profile is None else sections.known(ended.profile)


def _table(title: str, found: list[dict[str, Any]], width: int) -> list[Line]:
    names = list(dict.fromkeys(name for one in found for name in one))
    values = [
        [sections.scalar(one[name]) if one.get(name) not in (None, "", (), []) else "" for one in found]
        for name in names
    ]
    rows = [_line(name, pair, width) for name, pair in zip(names, values) if any(pair)]
    return [(), ((f" ▾ {title}", "accentword"),), *rows] if rows else []


def _line(name: str, values: list[str], width: int, tone: str = "") -> Line:
    """Name and both values; a difference between numbers has no column of its own: the gate decides on those."""
    size = max(8, (width - NAME) // 2)
    same = values[0] == values[1]
    tone = tone or ("dim" if same else "")
    mark = " " if same else "≠"
    return (
        (fmt.pad(f"   {fmt.visible(name, 60)}", NAME - 2), "dim"),
        (f"{mark} " if name else "  ", "warn"),
        (fmt.pad(values[0], size - 1), tone),
        (" ", ""),
        (fmt.pad(values[1], size), tone),
    )
