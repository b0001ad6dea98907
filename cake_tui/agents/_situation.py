"""Where a round stands, as the bandit reads it: how much to explore, what is on trial, what findings suggest."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from cake_tui.agents._record import Record, Tried
from cake_tui.menu import Menu
from cake_tui.model.finding import Finding
from cake_tui.model.history import History
from cake_tui.model.neighbourhood import block_shape, explored, octaves
from cake_tui.model.row import Row, Tally
from cake_tui.model.schedule import Schedule

EXPLORE_LEAST, EXPLORE_MOST, EXPLORE_STEP = 0.2, 0.8, 0.05
LATE = 0.8  # share of the budget after which only numbers near the best are refined
NUMBERS_LONG_ENOUGH = 3  # rounds of numbers without a win that call for a macro move
WINDOW = 256  # latest rows of a structure that are searched for explored shapes
NO_TALLY = Tally()


@dataclass(frozen=True)
class Situation:
    """All that a round's decisions read; made anew from the history each round."""

    history: History
    menu: Menu
    record: Record
    incumbent: Row
    base: Row  # the incumbent, or what ``revert_last()`` set
    exploring: float
    late: bool
    trial_rounds: int

    @classmethod
    def of(cls, history: History, menu: Menu, record: Record) -> Situation | None:
        """Read the history; None before candidate 0 has a time."""
        if history.incumbent is None:
            return None
        incumbent = history.rows[history.incumbent]
        override = history.base_override
        return cls(
            history,
            menu,
            record,
            incumbent,
            history.rows[override] if override is not None else incumbent,
            min(EXPLORE_MOST, EXPLORE_LEAST + EXPLORE_STEP * history.rounds_without_win),
            history.budget_share >= LATE,
            int(history.settings.get("trial_rounds", 3)),
        )

    @property
    def reverted(self) -> bool:
        """Whether proposals have to start from another base than the incumbent."""
        return self.base is not self.incumbent

    @property
    def calls_for_macro(self) -> bool:
        """Whether rounds of numbers without a win call for a change of structure."""
        rounds = self.history.rounds_without_win
        since = self.history.round - self.record.last_macro_round
        return min(rounds, since) >= NUMBERS_LONG_ENOUGH

    def weight(self, action: str) -> Tally:
        """The action's tally, a fresh one where it was never tried."""
        return self.history.actions.get(action, NO_TALLY)

    def on_trial(self) -> list[Tried]:
        """Structures in their first rounds, the least tried first, without the incumbent's and candidate 0's."""
        now, home = self.history.round, structure_of(self.incumbent)
        young = [
            tried
            for tried in self.record.structures.values()
            if tried.measured and tried.structure != home and 0 < tried.first_round >= now - self.trial_rounds
        ]
        return sorted(young, key=lambda tried: (len(tried.measured), tried.structure))

    def suggestions(self) -> dict[str, Finding]:
        """Usable actions that the latest findings suggest, each with its most confident finding."""
        found: dict[str, Finding] = {}
        findings = sorted(self.history.findings, key=lambda f: (f.kind != "structural", -f.confidence))
        for finding in findings:
            words = {finding.rule, finding.label, finding.label.replace(" ", "_")}
            for action in self.menu.actions:
                if action.usable and (action.name in finding.actions or words & set(action.hints)):
                    found.setdefault(action.name, finding)
        return found

    def explored(self, tried: Tried) -> set[tuple[float, float]]:
        """Block shapes that brought nothing from the structure's present best, in octaves; see `is_explored`."""
        best = tried.best
        if best is None or best.schedule is None:
            return set()
        return {octaves(shape) for shape in explored(tried.measured[-WINDOW:], best)}


def is_explored(schedule: Schedule, here: Schedule, shapes: Collection[tuple[float, float]]) -> bool:
    """Tell whether a schedule's block shape is that of, or next to, one that brought nothing (an octave a side)."""
    shape = shape_of(schedule) if shapes else None
    if shape is None or shape == shape_of(here):
        return False
    return any(abs(shape[0] - x) <= 1.0 and abs(shape[1] - y) <= 1.0 for x, y in shapes)


def shape_of(schedule: Schedule) -> tuple[float, float] | None:
    """The block's shape in octaves; None where the structure has no such knobs."""
    shape = block_shape(schedule)
    return None if shape is None else octaves(shape)


def structure_of(row: Row) -> str:
    """The structure of a row that has a schedule; empty where it has none."""
    return row.schedule.structure if row.schedule is not None else ""
