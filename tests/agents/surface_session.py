"""A session without processes: an agent proposes, the menu and the laws answer, a surface says what was measured."""

from __future__ import annotations

import functools
import itertools
import math
import random
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from cake_tui import ir
from cake_tui import menu as menus
from cake_tui.agents import Agent
from cake_tui.agents._space import Space, Step
from cake_tui.backends.simulated import SimulatedBackend
from cake_tui.backends.simulated.surfaces import SURFACES, Surface
from cake_tui.config import Settings
from cake_tui.errors import Ended
from cake_tui.menu import Menu
from cake_tui.model import event as ev
from cake_tui.model.finding import Finding
from cake_tui.model.history import History
from cake_tui.model.measure import GateResult
from cake_tui.model.move import Proposal
from cake_tui.model.outcome import (
    BuildFailed,
    Crashed,
    LaunchFailed,
    Measured,
    Outcome,
    Rejected,
    TimedOut,
    Verdict,
    WrongAnswer,
)
from cake_tui.model.schedule import KnobValue, Schedule
from tests.matmul import MATMUL

ROOT = Path(__file__).parents[2]
ENDINGS: dict[str, Callable[[], Outcome]] = {
    "BuildFailed": lambda: BuildFailed(step="build", reason="the surface"),
    "LaunchFailed": lambda: LaunchFailed(step="check", reason="the surface"),
    "Crashed": lambda: Crashed(step="check", reason="the surface"),
    "TimedOut": lambda: TimedOut(step="check", reason="the surface"),
    "WrongAnswer": lambda: WrongAnswer(step="check", reason="the surface"),
}
Truth = Callable[[Schedule], float]  # true time in us


@functools.cache
def packaged_menu() -> Menu:
    """The packaged actions on a simulated device."""
    return menus.load(ROOT / "actions.toml", MATMUL, SimulatedBackend().device("ridge"))


class SurfaceSession:
    """One run of an agent; every event goes through the one fold that the product uses."""

    def __init__(
        self,
        surface: Surface,
        agent: Agent,
        seed: int,
        *,
        menu: Menu | None = None,
        noise: float | None = None,
        truth: Truth | None = None,
        findings: Sequence[Finding] = (),
        lawful: Callable[[Schedule], Rejected | None] | None = None,
        **settings: float,
    ) -> None:
        self.surface, self.agent, self.seed = surface, agent, seed
        self.menu = menu or packaged_menu()
        self.truth = truth or surface.time_us
        self.noise = surface.noise.white * math.sqrt(2.0) if noise is None else noise
        self.findings = tuple(findings)
        self.history = History()
        self.refused_by_menu = 0
        self._lawful = lawful or laws
        self._draws = random.Random(f"noise/{seed}")
        flat = Settings().changed(screen=False, **settings).flat()
        self._apply(
            ev.SessionCreated(
                name="s",
                problem=MATMUL,
                device=self.menu.device,
                backend="simulated",
                agent="a",
                settings=flat,
                versions={},
            )
        )
        self._apply(ev.EngineStarted(pid=1, host="h"))
        first = self.menu.default(self.menu.structures[0])
        self._planned(Proposal(0, (), "the kernel's first schedule", "start", "start"), first, None, 0)
        self._measure(0)
        self._apply(ev.NoiseCalibrated(pair_noise=max(self.noise, 1e-4), pairs=16, against=0))

    def best_us(self) -> float:
        """True time of the incumbent."""
        schedule = self.history.rows[self.history.incumbent or 0].schedule
        assert schedule is not None
        return self.truth(schedule)

    def run(self, candidates: int, target_us: float = 0.0) -> int | None:
        """Run up to so many effective candidates; return how many it took to reach the target, None if never."""
        idle = 0
        while self.history.effective <= candidates and idle < 20:
            before = self.history.effective
            for _ in self.round():
                if self.best_us() <= target_us:
                    return self.history.effective - 1
            idle = 0 if self.history.effective > before else idle + 1
        return None

    def round(self) -> Sequence[int]:
        """Run one round; yields the candidates' numbers as they end."""
        history = self.history
        number = history.round + 1
        size = int(history.settings["round"])
        self._apply(ev.RoundBegan(round=number, size=size, incumbent=history.incumbent))
        wins = len(history.wins)
        rng = random.Random(f"{self.seed}/{number}")
        for proposal in list(self.agent.propose(history, self.menu, size, rng)):
            yield self._try(proposal, number)
        self._apply(ev.RoundEnded(round=number, accepted=len(history.wins) - wins, summary={}))

    def _try(self, proposal: Proposal, number: int) -> int:
        base = self.history.rows[proposal.base]
        assert base.standing is not None, "the base has a time"
        assert base.schedule is not None
        candidate = len(self.history.rows)
        try:
            schedule, level = self.menu.apply(base.schedule, proposal.moves)
        except Ended as ended:
            self.refused_by_menu += 1
            self._apply(ev.CandidateEnded(candidate=candidate, round=number, outcome=ended.outcome, proposal=proposal))
            return candidate
        refusal = self._lawful(schedule)
        if refusal is not None:
            self._apply(
                ev.CandidateEnded(
                    candidate=candidate,
                    round=number,
                    outcome=refusal,
                    proposal=proposal,
                    level=level,
                    schedule=schedule,
                )
            )
            return candidate
        self._planned(proposal, schedule, level, number)
        self._measure(candidate)
        return candidate

    def _planned(self, proposal: Proposal, schedule: Schedule, level: str | None, number: int) -> None:
        self._apply(
            ev.Planned(
                candidate=len(self.history.rows), round=number, proposal=proposal, level=level, schedule=schedule,
                predicted_us=None, source_sha256=schedule.text,
            )
        )  # fmt: skip

    def _measure(self, candidate: int) -> None:
        """The gate is taken as ideal (true gains above 0.5 % win); standings carry the noise of three pairs."""
        history = self.history
        row = history.rows[candidate]
        assert row.schedule is not None
        ending = self.surface.ending(row.schedule)
        if ending != "Measured":
            self._apply(ev.CandidateEnded(candidate=candidate, round=row.round, outcome=ENDINGS[ending]()))
            return
        true_us = self.truth(row.schedule)
        gain, verdict = 0.0, "slower"
        if history.incumbent is not None:
            gain = math.log(self.best_us() / true_us)
            verdict = "accepted" if gain > math.log(1.005) else "slower"
        seen = gain + self._draws.gauss(0.0, self.noise / math.sqrt(3.0)) if candidate else 0.0
        self._apply(
            ev.Coarse(
                candidate=candidate, against=history.incumbent, seconds=0.0, avg_us=true_us * math.exp(gain - seen),
                runs_us=(true_us,) * 3, gain=seen,
            )
        )  # fmt: skip
        if verdict == "accepted" and history.incumbent is not None:
            result = GateResult("accept", gain, gain, 1, 4, True, "", true_us, self.best_us())
            self._apply(ev.GateEnded(candidate=candidate, against=history.incumbent, seconds=0.0, result=result))
        outcome = Measured(step="gate", verdict=_verdict(verdict), avg_us=true_us)
        self._apply(ev.CandidateEnded(candidate=candidate, round=row.round, outcome=outcome, findings=self.findings))

    def _apply(self, event: ev.Event) -> None:
        self.history.apply(event)


def _verdict(word: str) -> Verdict:
    return "accepted" if word == "accepted" else "slower"


@functools.lru_cache(maxsize=200_000)
def laws(schedule: Schedule) -> Rejected | None:
    """What the structure's builder says to its knobs; None where it builds."""
    menu = packaged_menu()
    try:
        ir.build(menu.problem, schedule, menu.target, menu.device, runtime_sizes=False)
    except Ended as ended:
        return ended.outcome if isinstance(ended.outcome, Rejected) else None
    return None


@functools.cache
def reachable(structure: str) -> dict[str, tuple[KnobValue, ...]]:
    """The values that moves give each knob, from the default and from it with a switch turned."""
    menu = packaged_menu()
    found: dict[str, dict[KnobValue, None]] = {name: {value: None} for name, value in menu.default(structure).knobs}
    starts = [menu.default(structure)]
    switched = [step.schedule for step in _singles(starts[0]) if len(step.moves[0].arguments) == 0]
    for start in starts + switched:
        for step in _singles(start):
            for name, value in step.schedule.knobs:
                found[name][value] = None
    return {name: tuple(values) for name, values in found.items()}


def _singles(start: Schedule) -> tuple[Step, ...]:
    space = Space()
    space.bind(packaged_menu())
    return space.micro(start)


@functools.cache
def optimum_us(surface: str) -> float:
    """The fastest lawful schedule's true time: pairwise descent over reachable values from the best of 20,000."""
    menu, place = packaged_menu(), SURFACES[surface]
    return min(_descend(place, structure) for structure in menu.structures)


def _descend(place: Surface, structure: str) -> float:
    values = reachable(structure)
    names = sorted(values)
    rng = random.Random(structure)
    starts = [{name: rng.choice(values[name]) for name in names} for _ in range(20_000 if names else 1)]
    starts.sort(key=lambda knobs: _cost(place, structure, knobs))
    best = math.inf
    for knobs in starts[:12]:
        here = _cost(place, structure, knobs)
        improved = True
        while improved:
            improved = False
            for first, second in itertools.combinations(names, 2):
                for x, y in itertools.product(values[first], values[second]):
                    there = _cost(place, structure, {**knobs, first: x, second: y})
                    if there < here - 1e-9:
                        knobs, here, improved = {**knobs, first: x, second: y}, there, True
        best = min(best, here)
    return best


def _cost(place: Surface, structure: str, knobs: dict[str, KnobValue]) -> float:
    schedule = Schedule.of(structure, knobs)
    time_us = place.time_us(schedule)
    # Laws and endings are dearer to ask than the time, so only what is fast enough is asked.
    if time_us > 6_000.0 and structure != "naive":
        return 1e6 + time_us
    if place.ending(schedule) != "Measured" or _blocked(structure, schedule):
        return 1e6 + time_us
    return time_us


@functools.cache
def _register_block_is_lawful(structure: str, thread_m: KnobValue, thread_n: KnobValue) -> bool:
    schedule = packaged_menu().default(structure).with_knobs({"thread_m": thread_m, "thread_n": thread_n})
    return laws(schedule) is None


def _blocked(structure: str, schedule: Schedule) -> bool:
    m, n = schedule.knob("thread_m"), schedule.knob("thread_n")
    return m is not None and n is not None and not _register_block_is_lawful(structure, m, n)


def median_candidates(counts: Sequence[int | None]) -> float:
    """The median with runs that never arrived counted as infinite."""
    return statistics.median(math.inf if count is None else count for count in counts)
