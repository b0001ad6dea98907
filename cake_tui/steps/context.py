"""What one session's loop works with, and a candidate in flight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from cake_tui import ir
from cake_tui.agents import Agent
from cake_tui.config import Settings
from cake_tui.executors import Executor, Wait
from cake_tui.ir import cost
from cake_tui.menu import Menu
from cake_tui.model import event as ev
from cake_tui.model.facts import Agreement
from cake_tui.model.goal import Goal
from cake_tui.model.history import History
from cake_tui.model.lowered import Lowered
from cake_tui.model.measure import GateResult
from cake_tui.model.move import Proposal
from cake_tui.model.schedule import Schedule
from cake_tui.rules import Evidence
from cake_tui.steps import noise
from cake_tui.steps.build import Binaries, Jobs, jobs_of
from cake_tui.steps.plan import Plan, smoke_build
from cake_tui.steps.tell import Told

KEPT = 64  # candidates whose feedback a late profile may complete
RELEARN = 200  # rows: well under a second
NOISE_GUESS = 0.03  # pair noise until it is measured on an incumbent under 20 ms


class Folder(Protocol):
    """Where a candidate's texts go; the store's session is one."""

    def write(self, candidate: int, name: str, text: str) -> None:
        """Keep one file of a candidate; long logs keep head and tail."""

    def publish(self, candidate: int, files: Mapping[str, str]) -> None:
        """Replace ``best/`` in one step."""


class MenuSource(Protocol):
    """The action space, re-read while the run goes on."""

    def current(self, history: History) -> Menu:
        """The menu without what people disabled."""

    def poll(self) -> ev.MenuChanged | None:
        """What changed in the file since the last call, if anything."""


class Explained(msgspec.Struct, frozen=True):
    """What a candidate's feedback was made of, kept so that a late profile can be laid over it."""

    told: Told
    evidence: Evidence
    estimate: cost.Estimate | None


@dataclass
class Context:
    """Everything the loop works with; composed by `cli/run.py` alone."""

    history: History
    folder: Folder
    menu: MenuSource
    agent: Agent
    executor: Executor
    correction: cost.Correction
    guard: noise.Guard
    wait: Wait
    goal: Goal | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    start: Schedule | None = None  # candidate 0; None: the kernel's first schedule
    subjects: dict[int, Binaries] = field(default_factory=dict)
    explained: dict[int, Explained] = field(default_factory=dict)
    # (structure, term) that the cost model expected and a profiler did not find: rules hear no more of it
    disproved: set[tuple[str, str]] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)  # tool -> why it need not be tried again
    stumbled: dict[str, int] = field(default_factory=dict)  # tool -> failures in a row
    unfit: set[str] = field(default_factory=set)  # peers that could not be timed
    reverts: list[Proposal] = field(default_factory=list)  # asked for by the agent, for the round proposed next
    call_s: float = 3.0  # of the last call of a tool; before one was made, of a small one
    _read: tuple[dict[str, Any], Settings] | None = None  # what the settings were last read from, and they

    @property
    def holder(self) -> int:
        """The incumbent's number; raises ValueError before candidate 0 has a time."""
        if self.history.incumbent is None:
            raise ValueError("no incumbent yet")
        return self.history.incumbent

    @property
    def settings(self) -> Settings:
        """As of now: requests change them mid-run."""
        flat = self.history.settings
        if self._read is None or self._read[0] is not flat:  # asked at every step of a candidate
            self._read = flat, Settings.from_flat(flat)
        return self._read[1]

    @property
    def run_limit_s(self) -> float:
        """Limit of one run: max(run_s, run_factor x the best)."""
        running = self.settings.running
        return max(running.run_s, running.run_factor * (self.history.incumbent_us or 0.0) * 1e-6)

    def remember(self, number: int, explained: Explained) -> None:
        """Keep what a late profile will be laid over; the oldest are forgotten."""
        self.explained[number] = explained
        while len(self.explained) > KEPT:
            del self.explained[next(iter(self.explained))]

    def jobs(self, paper: Plan) -> Jobs:
        """Say what is to be compiled of a candidate; raises Ended(Rejected)."""
        return jobs_of(paper, self.smoke, self.settings.building.compile_s)

    def smoke(self, paper: Plan) -> Lowered:
        """Lower a candidate's smoke build; raises Ended(Rejected)."""
        problem, device = self.history.problem, self.history.device
        return smoke_build(paper.schedule, problem, device, self.settings.building.smoke_fraction, self.texts)

    def learn(self) -> None:
        """Teach the cost model what an earlier engine measured; the newest rows say most."""
        rows = list(self.history.measured())[-RELEARN:]
        problem, device = self.history.problem, self.history.device
        for row in rows:
            if row.schedule is None:
                continue
            program = ir.full_build(problem, row.schedule, device, texts=self.texts)
            estimate = cost.estimate(program, device, problem.shapes)
            if estimate is not None and (calm_us := self.history.calm_us(row)):
                self.correction.learn(cost.CostRow.of(estimate, calm_us))

    @property
    def pair_noise(self) -> float:
        """s of the gate."""
        return self.history.pair_noise or NOISE_GUESS


@dataclass
class Attempt:
    """A candidate in flight: its number, plan and what its steps have brought so far."""

    number: int
    plan: Plan
    jobs: Jobs | None = None
    binaries: Binaries | None = None
    agreement: Agreement | None = None
    coarse: ev.Coarse | None = None
    gate: GateResult | None = None

    @property
    def built(self) -> Binaries:
        """Its binaries; raises ValueError before they were built."""
        if self.binaries is None:
            raise ValueError(f"candidate {self.number} is not built")
        return self.binaries
