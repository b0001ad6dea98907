"""Everything the journal holds about one candidate, found by its round; no index of candidates is kept."""

from __future__ import annotations

from typing import TypeVar

from cake_tui.model import event as ev
from cake_tui.model.row import Row
from cake_tui.tui.views import View

ROUNDS_AFTER = 3  # a candidate may end while the next round is built already; a resume takes it up again
KINDS = frozenset({
    "Planned", "BuildEnded", "CheckEnded", "Coarse", "GateEnded", "CandidateEnded", "StepLost", "GuardFired",
    "EvaluatorReplaced", "PlayedOff", "Profiled", "Sanitized",
})  # fmt: skip
LATER = frozenset({"PlayedOff", "Profiled", "Sanitized"})  # these come at any time after
_E = TypeVar("_E", bound=ev.Event)


class Record:
    """Events of a candidate up to the view's cursor, oldest first."""

    def __init__(self, view: View, row: Row) -> None:
        self.row = row
        self.events = _events(view, row)

    def last(self, kind: type[_E]) -> _E | None:
        """The latest event of a kind."""
        return next((event for event in reversed(self.events) if isinstance(event, kind)), None)

    def all(self, kind: type[_E]) -> list[_E]:
        """All events of a kind."""
        return [event for event in self.events if isinstance(event, kind)]


def _events(view: View, row: Row) -> list[ev.Event]:
    journal, cursor = view.journal, min(view.cursor, len(view.journal))
    began = [index for index in range(cursor) if journal.kind(index) == "RoundBegan"]
    first = _first_of_round(view, began, row.round)
    start = began[first - 1] if first > 0 else 0
    past = _first_of_round(view, began, row.round + ROUNDS_AFTER)
    end = began[past] if past < len(began) else cursor
    wanted = [index for index in range(start, end) if journal.kind(index) in KINDS]
    wanted += [index for index in range(end, cursor) if journal.kind(index) in LATER]
    found = (journal.event(index) for index in wanted)
    return [event for event in found if event is not None and _about(event, row.number)]


def _about(event: ev.Event, number: int) -> bool:
    if isinstance(event, ev.Profiled):
        return any(number == one for one, _ in (*event.profiles, *event.failed))
    return getattr(event, "candidate", None) == number


def _first_of_round(view: View, began: list[int], number: int) -> int:
    """Place in `began` of the first round with this number or a later one."""
    low, high = 0, len(began)
    while low < high:
        middle = (low + high) // 2
        event = view.journal.event(began[middle])
        if isinstance(event, ev.RoundBegan) and event.round < number:
            low = middle + 1
        else:
            high = middle
    return low
