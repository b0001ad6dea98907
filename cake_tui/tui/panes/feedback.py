"""Feedback: why it ended so, findings with their confidence, and the structured JSON by section."""

from __future__ import annotations

from typing import Any, ClassVar

from textual import events
from textual.binding import Binding

from cake_tui import figures
from cake_tui.model.ending import meaning_of, reason_of, word_of
from cake_tui.model.history import History
from cake_tui.model.row import Row
from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line
from cake_tui.tui.pane import Copied, Pane
from cake_tui.tui.sections import entries, findings, items, scalar
from cake_tui.tui.views import View

# Sections in the order in which people ask; names of newer versions follow.
SECTIONS = ("failure", "correctness", "perf", "profile", "best_so_far", "round", "clock")
BESIDE = 96  # from this width on findings stand beside the JSON
TOP = "candidate"  # the heading of what stands in no section


class Feedback(Pane):
    """The latest candidate's by default; the board chooses another. Left and right go from section to section."""

    order: ClassVar[int] = 2
    title: ClassVar[str] = "feedback"
    help: ClassVar[str] = "the structured feedback of the chosen candidate, by section; J shows the exact JSON"
    finds: ClassVar[str] = "search the feedback"

    BINDINGS = [
        Binding("f", "fold", "fold or unfold the marked section", id="feedback.fold"),
        Binding("F", "fold_all", "fold or unfold all sections", id="feedback.fold_all"),
        Binding("left,h", "section(-1)", "section before", id="feedback.previous"),
        Binding("right,l", "section(1)", "next section", id="feedback.next"),
    ]

    def __init__(self, name: str, number: int) -> None:
        super().__init__(name, number)
        self.folded: set[str] = set()
        self.section = 0
        self._names: list[str] = []
        self._starts: list[int] = []  # lines of the headings, as drawn last
        self._shown: int | None = None

    def summary(self, view: View) -> Line:
        """Which candidate, and whether it is the latest."""
        if view.selected is None:
            return ()
        return ((f"#{view.selected}{' · latest' if view.follows else ' · chosen'}", "dim"),)

    def body(self, view: View, width: int, height: int) -> list[Line]:
        """Head line and reason, findings, sections."""
        if view.selected != self._shown:
            self._shown, self.top = view.selected, 0
        row = view.selected_row
        if row is None:
            return [((" no candidate has ended yet", "dim"),)]
        value = view.files.feedback(row.number)
        beside = width >= BESIDE
        head = _head(row, value, view.history, width)
        told = _findings(value, row, width // 2 if beside else width)
        room = width // 2 - 1 if beside else width
        blocks = (
            _blocks(value, row, room)
            if value is not None
            else [("from the journal: no feedback file", entries(_from_row(row, view), "   ", room))]
        )
        self._names = [name for name, _ in blocks]
        self.section = max(0, min(self.section, len(blocks) - 1))
        lines = [] if beside else [*head, *told]
        offset = len(head) if beside else 0
        self._starts = []
        for place, (name, inside) in enumerate(blocks):
            self._starts.append(len(lines) + offset)
            lines += self._section(name, inside, place == self.section and self.has_focus)
        if beside:
            half = width // 2
            count = max(len(lines), len(told))
            lines += [()] * (count - len(lines))
            told += [()] * (count - len(told))
            lines = [*head, *((*fmt.fit(a, half - 1), (" ", ""), *b) for a, b in zip(lines, told))]
        lines = self.marked(lines)
        return [lines[index] for index in self.window(len(lines), height)]

    def copied(self, view: View) -> Copied | None:
        """The exact JSON."""
        found = None if view.selected is None else view.files.feedback_text(view.selected)
        return None if found is None else Copied(f"feedback of #{view.selected}", found.text, found.path)

    def action_fold(self) -> None:
        """Fold the marked section, or unfold it."""
        if self._names:
            self.folded ^= {self._names[self.section]}
        self.draw()

    def action_fold_all(self) -> None:
        """Section names only, or everything."""
        self.folded = set() if self.folded else {*self._names}
        self.top = 0
        self.draw()

    def action_section(self, by: int) -> None:
        """Mark another section and bring it to the screen."""
        self.section = max(0, min(len(self._names) - 1, self.section + by))
        if self._starts:
            start, room = self._starts[self.section], max(1, self.size.height - 1)
            if not self.top <= start < self.top + room - 3:
                self.top = start
        self.draw()

    def on_click(self, event: events.Click) -> None:
        """A click on a heading folds it."""
        line = self.top + event.y - 1
        if event.y and line in self._starts:
            self.section = self._starts.index(line)
            self.action_fold()

    def _section(self, name: str, inside: list[Line], marked: bool) -> list[Line]:
        if not inside:
            return [((f" · {fmt.visible(name, 40)}: ", "dim"), ("none", "dim!" if marked else "dim"))]
        folded = name in self.folded
        sign = "▸" if folded else "▾"
        head: Line = ((f" {sign} ", "accent"), (fmt.visible(name, 60), "accent!" if marked else "accent"))
        return [head] if folded else [head, *inside]


def _head(row: Row, value: dict[str, Any] | None, history: History, width: int) -> list[Line]:
    """How it ended and what was tried; below it what that means and why."""
    glyph, word, tone = fmt.outcome_mark(row.ended_as)
    what = fmt.visible((value or {}).get("action_taken") or row.proposal.text, 200)
    gained = f"  {figures.gain(row.gain)}" if row.gain is not None and row.number else ""
    lines: list[Line] = [(
        (f" {glyph} {word}", tone + ("word" if tone in ("good", "bad", "warn") else "")),
        (gained, ""),
        (f"  {what}", "strong"),
    )]  # fmt: skip
    for told, shade in ((meaning_of(history, row), ""), (reason_of(row), tone)):
        if told and (row.time_us is None or row.verdict):
            lines += [((f"   {text}", shade),) for text in fmt.wrap(fmt.visible(told), max(8, width - 4))[:6]]
    return lines


def _findings(value: dict[str, Any] | None, row: Row, width: int) -> list[Line]:
    found = (value or {}).get("findings")
    if isinstance(found, list):
        return findings(found, width)
    return [((f" ▸ {fmt.visible(label, 80)}", "warn"),) for label in row.labels]


def _blocks(value: dict[str, Any], row: Row, width: int) -> list[tuple[str, list[Line]]]:
    """(name, lines) of each section; what stands in none comes first."""
    plain = {k: v for k, v in value.items() if not isinstance(v, (dict, list)) and k not in ("action_taken", *SECTIONS)}
    if row.ended_as != row.verdict and plain.get("verdict"):
        plain["verdict"] = f"{plain['verdict']} ({word_of(row.ended_as)})"
    blocks = [(TOP, entries(plain, "   ", width))]
    names = [name for name in SECTIONS if value.get(name) is not None]
    names += [name for name, v in value.items() if isinstance(v, (dict, list)) and name not in (*SECTIONS, "findings")]
    for name in names:
        inner = value[name]
        if isinstance(inner, dict):
            blocks.append((name, entries(inner, "   ", width)))
        elif isinstance(inner, list):
            blocks.append((name, items(inner, "   ", width)))
        else:
            blocks.append((name, [((f"   {scalar(inner)}", ""),)]))
    return blocks


def _from_row(row: Row, view: View) -> dict[str, Any]:
    """What the journal knows, where the feedback file is missing (not written yet, or removed)."""
    known: dict[str, Any] = {
        "outcome": row.outcome,
        "verdict": row.verdict,
        "reason": row.reason or None,
        "time": figures.time(row.time_us) if row.time_us is not None else None,
        "throughput": figures.rate(view.flops, row.time_us) if row.time_us is not None else None,
        "max_abs_err": row.max_abs_err,
        "schedule": row.schedule.text if row.schedule else None,
        "base": row.proposal.base,
        "chosen by": f"{row.proposal.chosen_by} ({row.proposal.who})",
        "why": row.proposal.reason or None,
    }
    return {key: value for key, value in known.items() if value is not None}


PLUGIN: type[Pane] = Feedback
