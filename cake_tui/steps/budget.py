"""Budget and goal: when the run is done, and why."""

from __future__ import annotations

from cake_tui.config import Settings
from cake_tui.errors import UserError
from cake_tui.ir.work import work
from cake_tui.model.goal import UNITS, Goal
from cake_tui.model.history import History


def parse_goal(text: str, peers: tuple[str, ...]) -> Goal:
    """Read a goal for a problem with these peers; raises UserError."""
    units = (*UNITS, *peers)
    goal = Goal.read(text)
    if goal is None or goal.unit not in units:
        raise UserError(
            f'--goal: found "{text}", allowed: a number above 0 and one of {", ".join(units)}, as "1.1 peer"'
        )
    return goal


def reached(goal: Goal, history: History) -> bool:
    """Tell whether the best has reached the goal, by figures of this session alone."""
    best = history.incumbent_us
    if best is None or history.incumbent in (None, 0):
        return False
    if goal.unit == "us":
        return best <= goal.number
    if goal.unit == "tflops":
        return (work(history.problem).throughput_tflops(best) or 0.0) >= goal.number
    if goal.unit == "baseline":
        return (history.speedup or 0.0) >= goal.number
    # A peer's ratio counts only when it was timed against this very incumbent.
    ratios = [
        peer.ratio
        for name, peer in history.peers.items()
        if goal.unit in ("peer", name) and peer.against == history.incumbent
    ]
    return bool(ratios) and min(ratios) >= goal.number


def left(history: History, settings: Settings) -> int:
    """Return how many candidates may still be begun, if all that are under way reach a verdict."""
    return settings.budget.candidates - history.effective - len(history.flying)


def spent(history: History, settings: Settings, goal: Goal | None) -> str | None:
    """Return why the run is done, or None while it is not."""
    budget = settings.budget
    if goal is not None and reached(goal, history):
        return f"goal reached: {goal.text}"
    if history.effective >= budget.candidates:
        return f"{history.effective} of {budget.candidates} candidates"
    if history.elapsed_s >= budget.hours * 3600:
        return f"{budget.hours:g} hours"
    if budget.rounds and history.rounds_without_win >= budget.rounds:
        return f"{history.rounds_without_win} rounds without a win"
    if history.rounds_without_source >= budget.exhausted_rounds:
        return f"space exhausted: {history.rounds_without_source} rounds without a new source"
    return None
