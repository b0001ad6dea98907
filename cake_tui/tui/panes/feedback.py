"""Feedback: findings with their confidence and the structured JSON of the selected candidate, by section."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from textual.binding import Binding

from cake_tui import figures
from cake_tui.model.row import Row
from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line
from cake_tui.tui.pane import Pane
from cake_tui.tui.views import View

# Sections in the order in which people ask; names of newer versions follow.
SECTIONS = ("failure", "correctness", "perf", "profile", "best_so_far", "round", "clock")
BESIDE = 96  # from this width on findings stand beside the JSON


class Feedback(Pane):
    """The latest candidate's by default; the board chooses another."""

    order: ClassVar[int] = 2
    title: ClassVar[str] = "feedback"
    help: ClassVar[str] = "the structured feedback; J shows the exact JSON, c folds and unfolds its sections"

    BINDINGS = [Binding("c", "fold", "fold or unfold sections", id="feedback.fold")]

    def __init__(self, name: str, number: int) -> None:
        super().__init__(name, number)
        self.folded = False
        self._shown: int | None = None

    def summary(self, view: View) -> Line:
        """Which candidate, and whether it is the latest."""
        if view.selected is None:
            return ()
        return ((f"#{view.selected}{' · latest' if view.follows else ' · chosen'}", "dim"),)

    def body(self, view: View, width: int, height: int) -> list[Line]:
        """Head line, findings, sections."""
        if view.selected != self._shown:
            self._shown, self.top = view.selected, 0
        row = view.selected_row
        if row is None:
            return [((" no candidate has ended yet", "dim"),)]
        value = view.files.feedback(row.number)
        head = _head(row, value)
        findings = _findings(value, row, width // 2 if width >= BESIDE else width)
        sections = _sections(value, self.folded) if value is not None else _from_row(row, view)
        if width >= BESIDE:
            half = width // 2
            left, right = [*sections], [*findings]
            count = max(len(left), len(right))
            blank: Line = ()
            left += [blank] * (count - len(left))
            right += [blank] * (count - len(right))
            lines = [head, *((*fmt.fit(a, half - 1), (" ", ""), *b) for a, b in zip(left, right))]
        else:
            lines = [head, *findings, *sections]
        return [lines[index] for index in self.window(len(lines), height)]

    def action_fold(self) -> None:
        """Show section names only, or everything."""
        self.folded = not self.folded
        self.top = 0
        self.draw()


def _head(row: Row, value: dict[str, Any] | None) -> Line:
    glyph, word, tone = fmt.outcome_mark(fmt.outcome_name(row.outcome, row.verdict, row.number))
    what = fmt.visible((value or {}).get("action_taken") or row.proposal.text, 200)
    gained = f"  {figures.gain(row.gain)}" if row.gain is not None and row.number else ""
    return (
        (f" {glyph} {word}", tone + ("word" if tone in ("good", "bad", "warn") else "")),
        (gained, ""),
        (f"  {what}", "strong"),
    )


def _findings(value: dict[str, Any] | None, row: Row, width: int) -> list[Line]:
    found = (value or {}).get("findings")
    if not isinstance(found, list):
        return [((f" ▸ {fmt.visible(label, 80)}", "warn"),) for label in row.labels]
    lines: list[Line] = []
    for finding in found:
        if not isinstance(finding, dict):
            continue
        share = finding.get("confidence")
        sure = figures.percent(float(share), 0) if isinstance(share, (int, float)) else figures.UNKNOWN
        lines.append((
            (" ▸ ", "warn"),
            (fmt.visible(finding.get("label"), 80), "warnword"),
            (f"  {sure} sure · {fmt.visible(finding.get('kind'), 20)}", "dim"),
        ))  # fmt: skip
        evidence = finding.get("evidence")
        if isinstance(evidence, dict) and evidence:
            seen = ", ".join(f"{fmt.visible(k, 40)} {_scalar(v)}" for k, v in evidence.items())
            lines += [((f"   {text}", "dim"),) for text in fmt.wrap(seen, max(8, width - 4))[:3]]
        actions = finding.get("actions")
        tries = f" → {', '.join(fmt.visible(a, 40) for a in actions)}" if isinstance(actions, list) and actions else ""
        advice = fmt.visible(finding.get("advice") or "", 400)
        lines += [((f"   {text}", ""),) for text in fmt.wrap(advice + tries, max(8, width - 4))[:4] if text.strip()]
    return lines


def _sections(value: dict[str, Any], folded: bool) -> list[Line]:
    """Each section's name, then its entries aligned; scalars at the top level first."""
    lines: list[Line] = []
    scalars = {
        k: v for k, v in value.items() if not isinstance(v, (dict, list)) and k not in ("action_taken", *SECTIONS)
    }
    lines += _entries(scalars, " ")
    names = [name for name in SECTIONS if name in value]
    names += [name for name, v in value.items() if isinstance(v, (dict, list)) and name not in (*SECTIONS, "findings")]
    for name in names:
        inner = value[name]
        if inner is None or inner in ({}, []):
            lines.append(((f" · {fmt.visible(name, 40)}: {_scalar(inner)}", "dim"),))
            continue
        lines.append(((f" {'▸' if folded else '▾'} {fmt.visible(name, 40)}", "accent"),))
        if not folded:
            lines += _entries(inner, "   ") if isinstance(inner, dict) else _items(inner, "   ")
    return lines


def _entries(values: dict[str, Any], indent: str, depth: int = 0) -> list[Line]:
    size = min(28, max((len(str(key)) for key in values), default=0))
    lines: list[Line] = []
    for key, value in values.items():
        name = fmt.visible(key, 60)
        if isinstance(value, dict) and value and depth < 3:
            lines.append(((f"{indent}{name}", "dim"),))
            lines += _entries(value, indent + "  ", depth + 1)
        elif isinstance(value, list) and value and depth < 3 and isinstance(value[0], (dict, list)):
            lines.append(((f"{indent}{name}", "dim"),))
            lines += _items(value, indent + "  ", depth + 1)
        else:
            tone = "bad" if value is False else "dim" if value is None else ""
            lines.append(((f"{indent}{fmt.pad(name, size)}  ", "dim"), (_scalar(value), tone)))
    return lines


def _items(values: list[Any], indent: str, depth: int = 0) -> list[Line]:
    lines: list[Line] = []
    for value in values[:100]:
        text = (
            ", ".join(f"{fmt.visible(k, 40)} {_scalar(v)}" for k, v in value.items())
            if isinstance(value, dict)
            else _scalar(value)
        )
        lines.append(((f"{indent}· {text}", ""),))
    return lines


def _scalar(value: Any) -> str:
    match value:
        case None:
            return "null"
        case True | False:
            return str(value).lower()
        case float():
            return f"{value:.5g}" if math.isfinite(value) else str(value)
        case list():
            inner = ", ".join(_scalar(item) for item in value[:16])
            return f"[{inner}{', …' if len(value) > 16 else ''}]"
        case dict():
            return "{" + ", ".join(f"{fmt.visible(k, 40)}: {_scalar(v)}" for k, v in list(value.items())[:16]) + "}"
    return fmt.visible(value, 1000)


def _from_row(row: Row, view: View) -> list[Line]:
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
    shown = {key: value for key, value in known.items() if value is not None}
    return [((" no feedback file; from the journal:", "dim"),), *_entries(shown, "   ")]


PLUGIN: type[Pane] = Feedback
