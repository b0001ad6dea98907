"""A recorded sample replayed as the product would run it: twice as many proposals, screened by what was learnt."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Iterator, Sequence

from cake_tui import menu as menus
from cake_tui.agents import Agent
from cake_tui.ir import cost
from cake_tui.menu import Menu
from cake_tui.model import event as ev
from cake_tui.model.device import Device
from cake_tui.model.move import Level, Proposal
from cake_tui.model.outcome import Outcome, Rejected, Screened
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Schedule
from tests.agents.recorded import QUIET, RecordedSurface
from tests.agents.samples import STORED, Sample, read_history
from tests.agents.surface_session import ROOT, SurfaceSession

IDLE = 20  # rounds without a candidate after which nothing more is expected
SESSION = ROOT / "sessions" / "example-cpu-512-random"  # the builders' defaults were chosen on this problem,
CUBES = ("cube-512", "cube-389")  # and on these: compiled, run and timed outside of the product
NAMES = (SESSION.name, *CUBES, *STORED)
Taken = tuple[Proposal, Schedule, Level]


class Replay(SurfaceSession):
    """One run of an agent over a recorded sample; without `screen` all that is proposed is measured.

    With `drawn_starts` a move to a structure ends at a recorded setting of it that is drawn by the seed, in one order
    for every agent, and not at the nearest to the builder's default: how good defaults are solves nothing.
    """

    def __init__(
        self, table: RecordedSurface, agent: Agent, seed: int, *, screen: bool = True, drawn_starts: bool = False
    ) -> None:
        menu = _menu(table.problem, table.device)
        self._table, self._screen, self._drawn_starts = table, screen, drawn_starts
        self._correction = cost.Correction()
        super().__init__(QUIET, agent, seed, menu=menu, noise=0.01, truth=table.time_us)
        self._learn(0)

    def reach(self, targets_us: Sequence[float], most: float = math.inf) -> list[int | None]:
        """Run until all targets are reached; return how many candidates each took, None for more than `most`."""
        found: list[int | None] = [None] * len(targets_us)
        idle, before = 0, -1
        most = min(most, self._table.count)
        while None in found and self.history.effective <= most and idle < IDLE:
            idle, before = (idle + 1 if self.history.effective == before else 0), self.history.effective
            for _ in self.round():
                found = [
                    self.history.effective - 1 if had is None and self.best_us() <= target_us else had
                    for had, target_us in zip(found, targets_us)
                ]
        return found

    def round(self) -> Iterator[int]:
        """Run one round in the order of the loop's steps; yields the candidates' numbers as they end."""
        history = self.history
        number, size = history.round + 1, int(history.settings["round"])
        self._apply(ev.RoundBegan(round=number, size=size, incumbent=history.incumbent))
        wins, rng = len(history.wins), random.Random(f"{self.seed}/{number}")
        wanted = size * (int(history.settings["propose_factor"]) if self._screen else 1)
        taken = self._taken(list(self.agent.propose(history, self.menu, wanted, rng)), number)
        kept = list(range(len(taken)))
        if self._screen and len(taken) > size:
            guesses = [self._table.estimate(schedule) for _, schedule, _ in taken]
            learnt = [self._correction.apply(guess) if guess is not None else None for guess in guesses]
            audit = float(history.settings["audit"])
            best, audited, dropped = cost.screen(learnt, size, audit, random.Random(rng.random()))
            kept = best + audited
            for at in dropped:
                self._end(taken[at], number, Screened(step="cost", reason="predicted", predicted_us=0.0))
        for at in kept:
            proposal, schedule, level = taken[at]
            candidate = len(history.rows)
            self._planned(proposal, schedule, level, number)
            self._measure(candidate)
            self._learn(candidate)
            yield candidate
        self._apply(ev.RoundEnded(round=number, accepted=len(history.wins) - wins, summary={}))

    def _taken(self, proposals: list[Proposal], number: int) -> list[Taken]:
        """Take each proposal to its nearest recorded schedule; screened ones may still be measured later."""
        had = {row.schedule for row in self.history.rows if row.outcome != "Screened"}
        found: list[Taken] = []
        for proposal in proposals:
            base = self.history.rows[proposal.base].schedule
            assert base is not None
            schedule, level = self.menu.apply(base, proposal.moves)
            if self._table.estimate(schedule) is None:
                refusal = Rejected(step="laws", reason="no program can be built")
                self._end((proposal, schedule, level), number, refusal)
                continue
            if self._drawn_starts and level == "macro":
                recorded = self._table.drawn_start(schedule.structure, self.seed, had)
            else:
                recorded = self._table.nearest(schedule, had)
            if recorded is None:
                refusal = Rejected(step="laws", reason="nothing of it is left on record")
                self._end((proposal, schedule, level), number, refusal)
                continue
            had.add(recorded)
            found.append((proposal, recorded, level))
        return found

    def _end(self, taken: Taken, number: int, outcome: Outcome) -> None:
        proposal, schedule, level = taken
        self._apply(
            ev.CandidateEnded(
                candidate=len(self.history.rows), round=number, outcome=outcome, proposal=proposal, level=level,
                schedule=schedule,
            )
        )  # fmt: skip

    def _learn(self, candidate: int) -> None:
        if not self._screen:
            return
        row = self.history.rows[candidate]
        guess = self._table.estimate(row.schedule) if row.schedule is not None else None
        calm_us = self.history.calm_us(row)
        if guess is not None and calm_us:
            self._correction.learn(cost.CostRow.of(guess, calm_us))


@functools.cache
def _menu(problem: Problem, device: Device) -> Menu:
    return menus.load(ROOT / "actions.toml", problem, device)


@functools.cache
def recorded(name: str, *, by_knobs: bool = False) -> RecordedSurface:
    """Return one of `NAMES` as a surface."""
    if name in CUBES:
        return RecordedSurface.cube(int(name.removeprefix("cube-")), by_knobs=by_knobs)
    sample = Sample.of(read_history(SESSION / "journal.jsonl")) if name == SESSION.name else Sample.stored(name)
    return RecordedSurface.of(sample, by_knobs=by_knobs)
