"""Actions: the menu with weights, tries and wins, what is switched off, and the queue of injected moves."""

from __future__ import annotations

from typing import ClassVar

from cake_tui import figures
from cake_tui.model.row import WEIGHT_MAX, Tally
from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line
from cake_tui.tui.pane import Pane
from cake_tui.tui.views import View

BAR = 8


class Actions(Pane):
    """What the agent believes, and what people asked for."""

    order: ClassVar[int] = 6
    title: ClassVar[str] = "actions"
    help: ClassVar[str] = "weights, tries and wins of each action; moves that people injected and who"

    def summary(self, view: View) -> Line:
        """Queue length."""
        waiting = len(view.history.queue) + len(view.pending)
        return ((f"{waiting} injected waiting", "accent"),) if waiting else ()

    def body(self, view: View, width: int, height: int) -> list[Line]:
        """Queue first, then actions by weight, then structures."""
        lines = _queue(view)
        bar = BAR if width >= 52 else 0
        name_width = max(12, min(26, width - 21 - (bar + 1 if bar else 0)))
        head = (
            fmt.pad(" action", name_width + 1)
            + fmt.pad("weight", 7 + (bar + 1 if bar else 0), True)
            + fmt.pad("tries", 7, True)
        )
        lines.append(((head + fmt.pad("wins", 6, True), "dim"),))
        off = set(view.history.disabled_actions)
        known = {**{name: Tally() for name in off}, **view.history.actions}
        lines += [_tally(n, t, name_width, bar, n in off) for n, t in _by_weight(known)]
        if view.history.structures:
            lines.append(((" structures", "dim"),))
            lines += [_tally(n, t, name_width, bar, False) for n, t in _by_weight(view.history.structures)]
        return [lines[index] for index in self.window(len(lines), height)]


def _by_weight(tallies: dict[str, Tally]) -> list[tuple[str, Tally]]:
    return sorted(tallies.items(), key=lambda item: (-item[1].weight, item[0]))


def _queue(view: View) -> list[Line]:
    lines: list[Line] = []
    for place, queued in enumerate(view.history.queue.values(), 1):
        moves = " + ".join(move.text for move in queued.moves)
        lines.append(
            ((f" {place}. {fmt.visible(moves, 200)}", "accentword"), (f"  by {fmt.visible(queued.who, 40)}", "dim"))
        )
    for text in view.pending.values():
        lines.append(((f" … {fmt.visible(text, 200)}", "accent"), ("  sent", "dim")))
    return lines


def _tally(name: str, tally: Tally, size: int, bar: int, off: bool) -> Line:
    filled = max(0, min(bar, round(tally.weight / WEIGHT_MAX * bar)))
    tone = "dim" if off else ""
    return (
        (" " + fmt.pad(fmt.visible(name, 60), size), tone),
        (" " + "█" * filled + "░" * (bar - filled) if bar else "", "accent"),
        (fmt.pad("off" if off else f"{tally.weight:.2f}", 7, True), "warn" if off else ""),
        (fmt.pad(figures.count(tally.tries), 7, True), ""),
        (fmt.pad(figures.count(tally.wins), 6, True), "good" if tally.wins else "dim"),
    )


PLUGIN: type[Pane] = Actions
