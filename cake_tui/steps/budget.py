"""Budget and goal: when the run is done, and why."""

from __future__ import annotations

import re

import msgspec

from cake_tui.config import Settings
from cake_tui.errors import UserError
from cake_tui.ir.work import work
from cake_tui.model.history import History

_GOAL = re.compile(r"^\s*(?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*(?P<unit>\S.*?)\s*$")


class Goal(msgspec.Struct, frozen=True):
    """What the person asks the run to reach: a ratio to a peer or the baseline, a time or a throughput."""

    number: float
    unit: str  # us | tflops | baseline | peer | the name of one peer

    @property
    def text(self) -> str:
        """As it is typed."""
        return f"{self.number:g} {self.unit}"


def parse_goal(text: str, peers: tuple[str, ...]) -> Goal:
    """Read ``1.1 peer``, ``1.2 numpy``, ``100 baseline``, ``450 us`` or ``0.4 tflops``; raises UserError."""
    units = ("us", "tflops", "baseline", "peer", *peers)
    match = _GOAL.match(text)
    unit = match["unit"].lower().replace("tflop/s", "tflops").removeprefix("x ") if match else ""
    if match is None or unit not in units or float(match["number"]) <= 0:
        raise UserError(
            f'--goal: found "{text}", allowed: a number above 0 and one of {", ".join(units)}, as "1.1 peer"'
        )
    return Goal(float(match["number"]), unit)


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
        return (history.baseline_us or 0.0) / best >= goal.number
    # A peer's ratio counts only when it was timed against this very incumbent.
    ratios = [
        peer.ratio
        for name, peer in history.peers.items()
        if goal.unit in ("peer", name) and peer.against == history.incumbent
    ]
    return bool(ratios) and min(ratios) >= goal.number


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
