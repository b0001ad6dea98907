"""A recorded sample replayed as the product would run it: twice as many proposals, screened by what was learnt."""

from __future__ import annotations

import random
from collections.abc import Iterator

from cake_tui import menu as menus
from cake_tui.agents import Agent
from cake_tui.ir import cost
from cake_tui.model import event as ev
from cake_tui.model.move import Level, Proposal
from cake_tui.model.outcome import Outcome, Rejected, Screened
from cake_tui.model.schedule import Schedule
from tests.agents.recorded import QUIET, RecordedSurface
from tests.agents.surface_session import ROOT, SurfaceSession

Taken = tuple[Proposal, Schedule, Level]


class Replay(SurfaceSession):
    """One run of an agent over a recorded sample; without `screen` all that is proposed is measured."""

    def __init__(self, table: RecordedSurface, agent: Agent, seed: int, *, screen: bool = True) -> None:
        menu = menus.load(ROOT / "actions.toml", table.problem, table.device)
        self._table, self._screen, self._correction = table, screen, cost.Correction()
        super().__init__(QUIET, agent, seed, menu=menu, noise=0.01, truth=table.time_us)
        self._learn(0)

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
        row = self.history.rows[candidate]
        guess = self._table.estimate(row.schedule) if row.schedule is not None else None
        calm_us = self.history.calm_us(row)
        if guess is not None and calm_us:
            self._correction.learn(cost.CostRow.of(guess, calm_us))
